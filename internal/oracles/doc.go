// Package oracles holds no code: its tests compare internal/provider with the official libraries of the senders, which
// stay out of the product's own module.
package oracles
