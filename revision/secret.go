package revision

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// This file keeps values that look like secrets out of snapshots: more people may read a revision than what it was
// recorded from, and it stays when the value was replaced. Where a value was, a snapshot has a mark. Two values at one
// place are equal, and a restore keeps the one that the parent has.

// mark is what a snapshot has in place of a value that looks like a secret.
const mark = "cairn.dev/not-recorded"

var (
	// secretVariable matches the names of environment variables that hold secrets.
	secretVariable = regexp.MustCompile(`(?i)passw|passphrase|secret|token|credential|api_?key|private_?key|access_?key|(^|_)(key|pwd|auth)$`)
	// secretField matches the names of fields that do. Many a field names a Secret, and is none itself, so that only the
	// end of its name counts, and fewer words.
	secretField = regexp.MustCompile(`(?i)(password|passwd|passphrase|token|(api|access|private|secret)[-_.]?key)$`)
)

// SecretVariable reports whether an environment variable of that name holds a secret, as far as its name tells.
func SecretVariable(name string) bool { return secretVariable.MatchString(name) }

// WithoutSecrets returns a target that leaves out the values of environment variables that are called like secrets, and
// those of text fields that are called like passwords, tokens and keys. They are neither stored nor compared, and a
// restore leaves them as they are in the parent; where it has none to keep, [Snapshot.Restore] returns a
// [*MissingSecretError].
func (t *Target) WithoutSecrets() *Target {
	out := *t
	out.masked = true
	return &out
}

// Masked reports whether values that look like secrets are left out: see [Target.WithoutSecrets].
func (t *Target) Masked() bool { return t.masked }

// MissingSecretError says that a snapshot cannot be restored: it does not hold a value that looks like a secret, and
// the parent has none at that place that could stay. Set the value in the parent first, or restore another snapshot.
type MissingSecretError struct {
	// Field is where the value would be: "spec.template.spec.containers[web].env[DB_PASSWORD].value".
	Field string
}

// Error says which field has no value.
func (e *MissingSecretError) Error() string {
	return fmt.Sprintf("the value of %s looks like a secret, so that it was not recorded, and the object has none there to keep: "+
		"set it in the object first", e.Field)
}

// hide puts marks in place of the secrets in tree, which it changes.
func hide(tree map[string]any) {
	for field, value := range tree {
		switch value := value.(type) {
		case string:
			if value != "" && secretField.MatchString(field) {
				tree[field] = mark
			}
		case map[string]any:
			hide(value)
		case []any:
			hideIn(value, field == "env")
		}
	}
}

// hideIn does the same for a list, of environment variables or of anything else.
func hideIn(list []any, variables bool) {
	for _, one := range list {
		switch one := one.(type) {
		case map[string]any:
			name, _ := one["name"].(string)
			if value, _ := one["value"].(string); variables && value != "" && SecretVariable(name) {
				one["value"] = mark
			}
			hide(one)
		case []any:
			hideIn(one, false)
		}
	}
}

// fill returns value, which it changes, with what live has at the same places instead of marks. field is where it is.
func fill(field string, value, live any) (any, error) {
	var err error
	switch value := value.(type) {
	case string:
		if value != mark {
			return value, nil
		}
		kept, ok := live.(string)
		if !ok || kept == "" {
			return nil, &MissingSecretError{Field: field}
		}
		return kept, nil
	case map[string]any:
		beside, _ := live.(map[string]any)
		for name, inner := range value {
			if value[name], err = fill(field+"."+name, inner, beside[name]); err != nil {
				return nil, err
			}
		}
	case []any:
		beside, _ := live.([]any)
		for i, inner := range value {
			key, other := counterpart(i, inner, beside)
			if value[i], err = fill(field+"["+key+"]", inner, other); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// LeftOut returns where s has no value because it looks like a secret: see [Target.WithoutSecrets].
func (s *Snapshot) LeftOut() []string {
	if !s.target.masked {
		return nil
	}
	var out []string
	for field, value := range s.content() {
		out = marks(out, field, value)
	}
	slices.Sort(out)
	return out
}

// marks adds the fields of value that have a mark.
func marks(to []string, field string, value any) []string {
	switch value := value.(type) {
	case string:
		if value == mark {
			to = append(to, field)
		}
	case map[string]any:
		for name, inner := range value {
			to = marks(to, field+"."+name, inner)
		}
	case []any:
		for i, inner := range value {
			key, _ := counterpart(i, inner, nil)
			to = marks(to, field+"["+key+"]", inner)
		}
	}
	return to
}

// counterpart returns the item of another list that an item of this one is, and how the two are called: by their name
// or, if they have none, by their place.
func counterpart(i int, item any, others []any) (key string, other any) {
	one, _ := item.(map[string]any)
	name, named := one["name"].(string)
	if !named {
		if i < len(others) {
			other = others[i]
		}
		return strconv.Itoa(i), other
	}
	for _, other := range others {
		if is, _ := other.(map[string]any); is["name"] == name {
			return name, other
		}
	}
	return name, nil
}
