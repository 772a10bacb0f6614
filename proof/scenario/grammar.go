package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// This file turns a step into what it does. The verbs themselves are in the files named after what they act on.

// action is a step that has been understood.
type action func(context.Context, *Player) error

// verb is one word of the vocabulary.
type verb struct {
	// form is how it is written: capitals stand for something, brackets for what may be left out.
	form string
	// read understands the words after the verb.
	read func(*reader) action
}

// verbs returns the vocabulary. It is a function because some verbs look at it.
func verbs() map[string]verb {
	all := map[string]verb{}
	for _, some := range []map[string]verb{objectVerbs, worldVerbs, faultVerbs, conditionVerbs} {
		maps.Copy(all, some)
	}
	return all
}

// compile understands a step, or says what was expected.
func compile(s Step, files map[string]string) (action, error) {
	all := verbs()
	v, ok := all[s.Verb]
	if !ok {
		return nil, fmt.Errorf("there is no verb %q; there are: %s", s.Verb, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	r := &reader{args: s.Args, options: maps.Clone(s.Options), files: files, verb: s.Verb}
	act := v.read(r)
	r.end()
	if r.err != nil {
		return nil, fmt.Errorf("%w; expected %s", r.err, v.form)
	}
	return act, nil
}

// reader reads the words of a step from left to right. After the first error it reads nothing more.
type reader struct {
	verb    string
	args    []string
	options map[string]string
	files   map[string]string
	err     error
}

func (r *reader) failf(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// word reads the next word, which is what.
func (r *reader) word(what string) string {
	if r.err != nil {
		return ""
	}
	if len(r.args) == 0 {
		r.failf("%s is missing", what)
		return ""
	}
	w := r.args[0]
	r.args = r.args[1:]
	return w
}

// is reads the next word if it is one of the given ones.
func (r *reader) is(words ...string) bool {
	if r.err == nil && len(r.args) > 0 && slices.Contains(words, r.args[0]) {
		r.args = r.args[1:]
		return true
	}
	return false
}

// must reads a word that has to stand there.
func (r *reader) must(word string) {
	if r.err == nil && !r.is(word) {
		r.failf("the word %q is missing", word)
	}
}

// number reads the next word if it is one.
func (r *reader) number() (int, bool) {
	if r.err != nil || len(r.args) == 0 {
		return 0, false
	}
	n, err := strconv.Atoi(r.args[0])
	if err != nil || n < 0 {
		return 0, false
	}
	r.args = r.args[1:]
	return n, true
}

// count reads a number that has to stand there.
func (r *reader) count(what string) int {
	n, ok := r.number()
	if !ok {
		r.failf("%s is missing, or no number", what)
	}
	return n
}

// option takes an option, if it is there.
func (r *reader) option(key string) (string, bool) {
	value, ok := r.options[key]
	delete(r.options, key)
	return value, ok
}

// numeric takes an option that is a number; without it, otherwise.
func (r *reader) numeric(key string, otherwise int) int {
	value, ok := r.option(key)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		r.failf("%s=%s is no number", key, value)
	}
	return n
}

// rest takes all options that are left.
func (r *reader) rest() map[string]string {
	out := r.options
	r.options = nil
	return out
}

// end reports what nobody has read.
func (r *reader) end() {
	switch {
	case r.err != nil:
	case len(r.args) > 0:
		r.failf("%q is too much", strings.Join(r.args, " "))
	case len(r.options) > 0:
		r.failf("%s takes no option %s", r.verb, strings.Join(slices.Sorted(maps.Keys(r.options)), ", "))
	}
}

// errNoSuch is the error of a reference that points nowhere.
var errNoSuch = errors.New("there is none")
