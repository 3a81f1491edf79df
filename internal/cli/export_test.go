package cli

// HeadersFor are the headers of what a bundle sends.
var HeadersFor = headersFor

// ShownBody is a body of so many bytes, or its beginning where it is truncated, as a terminal is given it.
var ShownBody = text

// Clipped is the beginning of a line that takes so many columns of a terminal at most.
var Clipped = clipped

// WriteFile is how commands write a file.
var WriteFile = writeFile
