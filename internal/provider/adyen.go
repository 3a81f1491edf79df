package provider

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"strings"
)

// Adyen's payment notifications carry a signature in each item of the body, over some of the item's fields; its other
// webhooks sign the body and send the HmacSignature header.

var adyenItems = []string{"notificationItems"}

// adyenFields are signed joined by ":", in this order.
var adyenFields = [][]string{{"pspReference"}, {"originalReference"}, {"merchantAccountCode"}, {"merchantReference"},
	{"amount", "value"}, {"amount", "currency"}, {"eventCode"}, {"success"}}

// eachAdyenItem calls fn with each item until it returns false, and returns the number of items.
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
	keys := deriveKeys(s.Key, secret)
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
		case !hmac.Equal(digest, adyenDigest(item, keys[0])):
			why = signatureMismatch
		}
		return why == verified // every item must be genuine
	})
	switch {
	case count == 0:
		return missingSignature
	case why == verified && !in.hasOneReading():
		return bodyHashMismatch
	}
	return why
}

func adyenDigest(item value, key []byte) []byte {
	fields := make([]string, len(adyenFields))
	for i, path := range adyenFields {
		fields[i] = item.at(path).text()
	}
	return hmacSHA256(string(key), strings.Join(fields, ":"))
}

// signAdyen replaces the signature of each item. An item without one has no place for it.
func (s *scheme) signAdyen(o *Outgoing, secret string) error {
	keys := deriveKeys(s.Key, secret)
	if len(keys) == 0 {
		return unsignable("the configured secret cannot be used as a key")
	}
	if !json.Valid(o.Body) {
		return unsignable("the signature stands in the body, which is no JSON")
	}
	e := editor{text: o.Body}
	var places []field
	var texts []string
	e.find(skipSpace(o.Body, 0), []string{"notificationItems", "*", "NotificationRequestItem"}, "", func(_ string, item field) {
		text := base64.StdEncoding.EncodeToString(adyenDigest(value(o.Body[item.start:item.end]), keys[0]))
		e.find(item.start, []string{"additionalData", "hmacSignature"}, "", func(_ string, place field) {
			places, texts = append(places, place), append(texts, `"`+text+`"`)
		})
	})
	if len(places) == 0 {
		return unsignable("no item of the body holds a signature")
	}
	o.Body = replaced(o.Body, places, texts)
	return nil
}
