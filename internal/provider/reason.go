package provider

import "fmt"

// reason is the outcome of a check, ordered by how specific it is: of several failures the greatest is reported.
type reason int

const (
	missingSignature reason = iota
	unusableSecret
	missingID
	missingTimestamp
	malformedTimestamp
	malformedSignature
	foreignKey
	otherTopic
	noSupportedScheme
	signatureMismatch
	bodyHashMismatch
	timestampOutOfTolerance
	keyUnavailable // nothing was checked; see KeyRef
	verified
)

// code returns the stable word of a reason.
func (r reason) code() string {
	switch r {
	case unusableSecret:
		return "unusable_secret"
	case missingSignature:
		return "missing_signature"
	case missingID:
		return "missing_id"
	case missingTimestamp:
		return "missing_timestamp"
	case malformedTimestamp:
		return "malformed_timestamp"
	case malformedSignature:
		return "malformed_signature"
	case foreignKey:
		return "foreign_key"
	case otherTopic:
		return "other_topic"
	case noSupportedScheme:
		return "no_supported_scheme"
	case signatureMismatch:
		return "signature_mismatch"
	case bodyHashMismatch:
		return "body_hash_mismatch"
	case timestampOutOfTolerance:
		return "timestamp_out_of_tolerance"
	case keyUnavailable:
		return KeyUnavailable
	}
	return ""
}

// message returns a sentence for the user. where names the signature's place.
func (r reason) message(name, where string) string {
	switch r {
	case unusableSecret:
		return fmt.Sprintf("The configured secret cannot be used as a %s key.", name)
	case missingSignature:
		return fmt.Sprintf("The request carries no %s signature (%s).", name, where)
	case missingID:
		return "The message id that is part of the signed content is missing."
	case missingTimestamp:
		return "The timestamp that is part of the signed content is missing."
	case malformedTimestamp:
		return "The timestamp that is part of the signed content cannot be read."
	case malformedSignature:
		return fmt.Sprintf("The signature (%s) does not have the form that %s uses.", where, name)
	case foreignKey:
		return fmt.Sprintf("The delivery names a certificate at an address that does not belong to %s.", name)
	case otherTopic:
		return "The delivery is for another topic than the one whose ARN is configured."
	case noSupportedScheme:
		return fmt.Sprintf("The signature (%s) holds no version that %s uses for genuine deliveries.", where, name)
	case signatureMismatch:
		return "The signature does not match the body with any of the configured secrets."
	case bodyHashMismatch:
		return "The signature is right but the body is not the one that it vouches for."
	case timestampOutOfTolerance:
		return "The signature is right but its timestamp is too far from the time of reception."
	case keyUnavailable:
		return fmt.Sprintf("The public key of %s that the signature is checked with has not been fetched yet, or could not be.", name)
	}
	return ""
}
