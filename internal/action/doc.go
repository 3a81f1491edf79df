// Package action runs automation on arriving events: definitions, trigger conditions, steps and their traces. It hides
// how a run's context is read, how templates are escaped for their place, and what of a run is secret.
package action
