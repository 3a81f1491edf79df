package provider

import "hookglass"

// Shopify signs the body with the app's client secret, in base64. Its Events, which are in preview, name their headers
// without the X-, and a receiver of these reads no others.
func shopifySchemes() []*scheme {
	webhook, event := "X-Shopify-Hmac-Sha256", "shopify-hmac-sha256"
	return []*scheme{{Headers: []string{webhook, event}, Encoding: "base64", first: func(h hookglass.Headers) string {
		if h.Has("shopify-topic") && !h.Has("X-Shopify-Topic") {
			return event
		}
		return webhook
	}}}
}
