package provider

// Stripe's header is a list, t=<seconds>,v1=<hex>, with several v1 while a secret is being rolled; v0 is for tests and
// is ignored. Pairs are split at commas and not trimmed. The secret is used whole, including whsec_. Old timestamps are
// refused, future ones accepted, as in Stripe's libraries (providers.md sections 2 and 3).
func stripeSchemes() []*scheme {
	return []*scheme{{
		Headers: []string{"Stripe-Signature"}, Encoding: "hex", Prefix: "v1=", List: ",", TimeField: "t",
		Tolerance: 300, PastOnly: true, Payload: []string{"{time}.{body}"}, exact: true,
	}}
}
