package provider

// Shopify signs the body with the app's client secret, in base64. Previews send the header without its X-.
func shopifySchemes() []*scheme {
	return []*scheme{{Headers: []string{"X-Shopify-Hmac-Sha256", "shopify-hmac-sha256"}, Encoding: "base64"}}
}
