// Package section decodes documents strictly into tagged structs: errors name
// file, line, column and key of everything that is refused, all at once. The
// reverse, defaults, a readable difference of two documents and their JSON
// Schema come from the same tags, which are the single source for all of them:
//
//	yaml     the key
//	doc      one sentence for humans, in the schema
//	default  the value of an absent key, written as in the document
//	defaults  on embedded structs: other defaults for some of their keys, "a=1,b=none"
//	enum     the legal words, separated by commas
//	registered  what words of another module are registered as (Words)
//	range    least and greatest legal number, "0,63"; of sizes and rates in
//	         bytes and bit/s
//	keys     the same for the keys of a map
//	id       on lists: the key that names an element; must be unique
//	need     "yes": the key must be there
//	was      the name that the key had before, which is still understood
//	single   "yes", on lists: one element may stand without brackets
//
// Fields are numbers, words, types that read and write text (those of package
// units among them), structs, lists, maps, and pointers where zero is a legal
// value with another default.
//
//	Extra           sections that a place may have without knowing them
//	Parse, Decode   bytes, or a part of a document, into a struct
//	Fill            what was left out, by the default tags
//	YAML, JSON      the reverse
//	Diff            what changes between two documents, line by line
//	Schema          JSON Schema (draft 2020-12)
package section

// MaxDocument is the most bytes of a document: one with half a million routes takes about
// 40 MB.
const MaxDocument = 64 << 20
