package hookglass

// TimeChange is a time in a request that a time-shifted replay moved. One of Pointer and Header says where it stands.
type TimeChange struct {
	Pointer string // into the body (RFC 6901); of a form, /field; what follows a ! stands in JSON within the text before it
	Header  string
	From    string // as spelled
	To      string
}
