package scenario

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// This file is a script as a value. What its words mean is not decided here.

// Script is one scenario.
type Script struct {
	// Name is where it was read from; it stands in errors.
	Name string
	// Why is the comment at the top, without the # signs: the bug or the fault that the script is about.
	Why string
	// Controllers are the names of those that the managers run, as the manager knows them.
	Controllers []string
	// Seed makes the choices of the simulation. The sandbox has none to make.
	Seed uint64
	// Only is the name of the one stage that can play the script, with the reason; both are empty for a script that every
	// stage can play.
	Only, Because string
	// Steps are what happens, in order.
	Steps []Step
	// Files are the other sections, by name: manifests for apply, and the golden histories.
	Files map[string]string
	// order is how the sections came in the file.
	order []string
}

// Step is one line: a verb, words, and options.
type Step struct {
	// Line is its number in the file, from 1; 0 for a step that was not read.
	Line int
	Verb string
	Args []string
	// Options are the words key=value. Nil and empty mean the same.
	Options map[string]string
}

// String is the line, without its number: Parse reads it as an equal step. Options stand in the order of their keys.
func (s Step) String() string {
	words := []string{s.Verb}
	for i, arg := range s.Args {
		if rest := i == len(s.Args)-1 && len(s.Options) == 0; rest && literal(arg) {
			words = append(words, arg)
		} else {
			words = append(words, quoted(arg, true))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Options)) {
		words = append(words, key+"="+quoted(s.Options[key], false))
	}
	return strings.Join(words, " ")
}

// literal reports whether a word is JSON that goes on to the end of the line, spaces included.
func literal(word string) bool {
	return strings.HasPrefix(word, "{") && strings.TrimSpace(word) == word && !strings.ContainsAny(word, "\n\r")
}

// quoted is a word as it stands in a line. An argument must not look like an option, a comment or JSON either.
func quoted(word string, argument bool) string {
	plain := word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '"' || r == unicode.ReplacementChar
	})
	if plain && argument {
		_, _, option := cutOption(word)
		plain = !option && word[0] != '#' && word[0] != '{'
	}
	if plain {
		return word
	}
	return strconv.Quote(word)
}

// cutOption splits key=value. A key is made of letters, digits and the signs that paths of fields and label keys need.
func cutOption(word string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(word, "=")
	return key, value, ok && optionKey(key)
}

func optionKey(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-/[]", r)
	})
}
