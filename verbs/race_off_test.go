//go:build !race

package verbs

const underRace = false
