package provider

// firstClass attaches the code of their own files to the providers of the specification; their other facts are in the
// table.
func firstClass(s *sender) error {
	switch s.ID {
	case "github":
		s.Signatures = githubSchemes()
	case "stripe":
		s.Signatures = stripeSchemes()
	case "shopify":
		s.Signatures = shopifySchemes()
	case "slack":
		s.Signatures, s.describe = slackSchemes(), describeSlack
	case "twilio":
		s.describe, s.check, s.seal = describeTwilio, checkTwilio, sealTwilio
	}
	for _, sc := range s.Signatures {
		if err := sc.prepare(); err != nil {
			return err
		}
	}
	return nil
}
