package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"strings"
)

// Adyen's payment notifications carry a signature in each item of the body, over some of the item's fields; its other
// webhooks sign the body and send the HmacSignature header.

var adyenItems = []string{"notificationItems"}

// adyenFields are signed joined by ":", in this order.
var adyenFields = [][]string{{"pspReference"}, {"originalReference"}, {"merchantAccountCode"}, {"merchantReference"},
	{"amount", "value"}, {"amount", "currency"}, {"eventCode"}, {"success"}}

// eachAdyenItem calls fn with each item until it returns false, and returns how many there are.
func eachAdyenItem(in *input, fn func(item value, signature string) bool) int {
	count, items := 0, in.at(adyenItems)
	elements(items, 0, func(n, start, end int) bool {
		count++
		item := items[start:end].child("NotificationRequestItem")
		return fn(item, item.at([]string{"additionalData", "hmacSignature"}).text())
	})
	return count
}

func (s *scheme) verifyAdyen(in *input, secret string) reason {
	keys := deriveKeys(keyHex, secret)
	if len(keys) == 0 {
		return unusableSecret
	}
	why := verified
	count := eachAdyenItem(in, func(item value, signature string) bool {
		digest, ok := decodeDigest(nil, signature, "base64")
		switch {
		case signature == "":
			why = missingSignature
		case !ok:
			why = malformedSignature
		default:
			fields := make([]string, len(adyenFields))
			for i, path := range adyenFields {
				fields[i] = item.at(path).text()
			}
			h := hmac.New(sha256.New, keys[0])
			h.Write([]byte(strings.Join(fields, ":")))
			if !hmac.Equal(digest, h.Sum(nil)) {
				why = signatureMismatch
			}
		}
		return why == verified // every item must be genuine
	})
	if count == 0 {
		return missingSignature
	}
	return why
}
