package cli

// HeadersFor are the headers of what a bundle sends.
var HeadersFor = headersFor
