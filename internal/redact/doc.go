// Package redact keeps secrets out of what is recorded and shown: known values in whatever spelling they come, longer
// parts of them, what stands under a name that tells of a credential, in JSON, forms, headers, XML, settings and text
// that only resembles these, and what has the form of a credential under any name. It hides what the spellings, the
// names and the forms are, and how a text is searched in time proportional to its length. It is pure; a [Redactor] is
// safe for concurrent use.
package redact
