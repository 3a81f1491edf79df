//go:build !race

package cputime

const detectsRaces = false
