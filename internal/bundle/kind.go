package bundle

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"

	"hookglass/internal/redact"
)

// Kind is the kind of a recognised value.
type Kind string

// The kinds.
const (
	Email      Kind = "email"
	Phone      Kind = "phone"
	Card       Kind = "card" // a payment card's number
	IBAN       Kind = "iban"
	IP         Kind = "ip"
	JWT        Kind = "jwt"
	Token      Kind = "token" // a credential, by its form or by the name of its field
	Name       Kind = "name"  // of a person
	Address    Kind = "address"
	Birth      Kind = "birth"      // a date of birth
	Identifier Kind = "identifier" // issued to a person by an authority or a bank
	Secret     Kind = "secret"     // one of the endpoint's secrets
	Pointed    Kind = "pointer"    // named by the caller
	Encoded    Kind = "encoded"    // contains such a value in an encoding that cannot be edited
	Removed    Kind = "removed"    // a header that was left out
	Binary     Kind = "binary"     // content that cannot be examined and was left out
)

// keepable are the kinds that a bundle may keep: all except secrets and what the caller named.
var keepable = []Kind{Email, Phone, Card, IBAN, IP, JWT, Token, Name, Address, Birth, Identifier, Binary}

// fieldKinds are the kinds of fields by their names, in lower case without separators between words.
var fieldKinds = fields(map[Kind]string{
	Name: `firstname lastname givenname familyname middlename surname forename fullname displayname realname maidenname nickname patronymic
		username login screenname userlogin cardholder cardholdername customername contactname recipientname payername nameoncard
		accountholdername holdername profilename authorname sendername ownername`,
	Phone: `phone phonenumber mobile mobilephone mobilenumber cell cellphone tel telephone telephonenumber fax faxnumber msisdn homephone workphone waid`,
	Address: `street street1 street2 streetaddress streetname housenumber address address1 address2 address3 line1 line2 line3 addressline1 addressline2
		addressline3 addressline postalcode postcode zip zipcode city town locality latitude longitude lat lng lon`,
	Birth:      `dob dateofbirth birthdate birthday`,
	Identifier: `ssn socialsecuritynumber taxid taxnumber vatid vatnumber nationalid passport passportnumber personalnumber accountnumber bankaccount bic last4 iin`,
	Card:       `cardnumber pan creditcard creditcardnumber ccnumber`,
	Email:      `email emailaddress mail`,
})

// lastWords are names of fields that tell the kind of a value behind other words and before a number too:
// billing_phone, FromCity, phone2.
var lastWords = fields(map[Kind]string{
	Name:       `firstname lastname givenname familyname middlename surname forename fullname maidenname`,
	Phone:      `phone phonenumber mobile mobilephone mobilenumber cellphone telephone telephonenumber fax faxnumber msisdn`,
	Address:    `street streetaddress streetname postalcode postcode zip zipcode city`,
	Birth:      `dob dateofbirth birthdate birthday`,
	Identifier: `ssn taxid vatid nationalid passportnumber`,
})

func fields(by map[Kind]string) map[string]Kind {
	all := map[string]Kind{}
	for kind, names := range by {
		for _, name := range strings.Fields(names) {
			all[name] = kind
		}
	}
	return all
}

// kindOf returns the kind of the fields of a name, or "".
func kindOf(name string) Kind {
	if kind, known := fieldKinds[folded(name)]; known {
		return kind
	}
	name = strings.TrimRight(unbracketed(name), "0123456789")
	for i, words := len(name)-1, 0; i >= 0 && words < mostLastWords; i-- {
		if !wordAt(name, i) {
			continue
		}
		if kind, known := lastWords[folded(name[i:])]; known {
			return kind
		}
		words++
	}
	return ""
}

// mostLastWords is the number of words in the longest of lastWords: date_of_birth.
const mostLastWords = 3

// wordAt reports whether a word of a name begins at a byte: in first_name, firstName and IPCity two do.
func wordAt(name string, i int) bool {
	if i == 0 {
		return true
	}
	upper := func(i int) bool { return i < len(name) && name[i] >= 'A' && name[i] <= 'Z' }
	lower := func(i int) bool { return i < len(name) && name[i] >= 'a' && name[i] <= 'z' }
	return strings.IndexByte("-_ .", name[i-1]) >= 0 || upper(i) && (!upper(i-1) || lower(i+1))
}

// unbracketed returns of a form's name in brackets the last word.
func unbracketed(name string) string {
	if i := strings.LastIndexByte(name, '['); i >= 0 && strings.HasSuffix(name, "]") && i+2 < len(name) {
		return name[i+1 : len(name)-1]
	}
	return name
}

// folded returns a name in lower case without separators between words; of a form's name in brackets, the last word.
func folded(name string) string {
	name = unbracketed(name)
	return strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune("-_ .", r):
			return -1
		case r >= 'A' && r <= 'Z':
			return r | 0x20
		}
		return r
	}, name)
}

// personal reports whether an object with a member of this name describes a person or a company, so that its "name" is
// a name.
func personal(name string) bool {
	switch kindOf(name) {
	case Email, Phone, Birth, Name:
		return true
	case Address:
		name = folded(name)
		return fieldKinds[name] == Address && name != "address" && len(name) > 3
	}
	return false
}

// maxName is the length of the longest name that is examined, in bytes with separators.
const maxName = 200

// fieldKind returns the kind of a value by its field's name, or "".
func (m *Maker) fieldKind(at spot, value string) Kind {
	if len(at.name) > maxName {
		return ""
	}
	name := folded(at.name)
	if len(name) > 100 {
		return ""
	}
	kind := kindOf(at.name)
	digits := digitsIn(value)
	switch {
	case name == "name" && at.person && plainName(value):
		return Name
	case kind == "" && namesIP(at.name):
		if _, ok := integerIP(value); ok {
			return IP
		}
	case kind == Name && !plainName(value), kind == Email:
		kind = "" // an address is recognised by its form
	case (kind == Phone || kind == Card) && (digits < 5 || digits*2 < len(value)):
		kind = ""
	case kind == Address && (strings.Contains(value, "@") || strings.Contains(value, "://") || len(value) > 200):
		kind = ""
	}
	if kind == "" && at.source != "path" && redact.Sensitive(at.name) {
		return Token
	}
	return kind
}

// namesIP reports whether a field of this name may hold an IP address as a number: its last word says so.
func namesIP(name string) bool {
	name = unbracketed(name)
	for _, word := range []string{"ip", "ipv4", "ipaddr", "ipaddress"} {
		for i := len(name) - 1; i >= 0 && i >= len(name)-len(word)-2; i-- {
			if wordAt(name, i) && folded(name[i:]) == word {
				return true
			}
		}
	}
	return false
}

// integerIP returns the IPv4 address that a number stands for, as databases and logs store it.
func integerIP(s string) (dotted string, ok bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n < 1<<24 || strconv.FormatUint(n, 10) != s {
		return "", false
	}
	dotted = netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).String()
	return dotted, someone(dotted)
}

// asInteger is the number of a dotted IPv4 address.
func asInteger(dotted string) string {
	b := netip.MustParseAddr(dotted).As4()
	return strconv.FormatUint(uint64(binary.BigEndian.Uint32(b[:])), 10)
}

// plainName reports whether a text may be a person's name.
func plainName(s string) bool {
	letters := strings.ContainsFunc(s, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0x80 })
	return letters && len(s) <= 200 && !strings.ContainsAny(s, "/\\{}<>=@\n")
}

// nobody are words in name fields that are not names. They are replaced there and nowhere else.
var nobody = fields(map[Kind]string{Name: `test tester user users admin system bot null none unknown customer guest default anonymous true false name
	data order orders payment company account member owner sender support team info hello noreply sales service app api web the and von van der inc llc ltd gmbh`})
