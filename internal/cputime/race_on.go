//go:build race

package cputime

const detectsRaces = true
