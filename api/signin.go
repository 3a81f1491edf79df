package api

// ExchangeCode is the body of POST /cli_auth/exchange.
type ExchangeCode struct {
	Code string `json:"code" required:"true" minLength:"1" doc:"The one-time code that the page showed." example:"7XK2-M9QD-4TWH"`
}

// SignedIn is a command line that was signed in.
type SignedIn struct {
	Token   string  `json:"token" doc:"Shown this once." example:"hg_…"`
	User    User    `json:"user"`
	Account Account `json:"account"`
}
