package hookglass

// TimeChange is a time that a time-shifted replay changed. Exactly one of Pointer and Header says where it is.
type TimeChange struct {
	Pointer string // into the body (RFC 6901), or /field of a form; after a !, into JSON within that text
	Header  string
	From    string // as spelled
	To      string
}
