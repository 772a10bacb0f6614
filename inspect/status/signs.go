package status

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cairn-dev/cairn/internal/readiness"
)

// This file reads the conditions, phases and flags of a status by their words (words.go). The worst one decides.

// sign is the meaning of one field of a status.
type sign struct {
	meaning meaning
	// text is a sentence about the field for users.
	text string
}

// worst returns the first of the worst signs.
func worst(all []sign) (out sign) {
	for _, s := range all {
		if s.meaning > out.meaning {
			out = s
		}
	}
	return out
}

// signs returns the meanings of the fields of a status, conditions first.
func signs(o *unstructured.Unstructured) []sign {
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	message, _ := status["message"].(string)
	out := conditionSigns(o.Object)
	for _, name := range slices.Sorted(maps.Keys(status)) {
		switch v := status[name].(type) {
		case string:
			out = append(out, textSign(name, v, message))
		case bool:
			out = append(out, flagSign(name, v))
		case map[string]any:
			if words := wordsOf(name); len(words) == 0 || slices.Contains(earlier, words[0]) {
				continue
			}
			message, _ := v["message"].(string)
			if vocabulary[strings.ToLower(name)] == bad && message != "" {
				out = append(out, sign{bad, sentence("status."+name, message)})
			}
			for _, inner := range slices.Sorted(maps.Keys(v)) {
				if text, ok := v[inner].(string); ok {
					out = append(out, textSign(name+"."+inner, text, message))
				}
			}
		}
	}
	return out
}

// conditionSigns returns the meanings of the conditions of an object.
func conditionSigns(o map[string]any) (out []sign) {
	serves := false
	var all []*readiness.ObjectCondition
	for _, c := range reported(o) {
		all = append(all, readiness.FindCondition(o, c.Type))
		serves = serves || c.Status == string(corev1.ConditionTrue) && typeMeaning(c.Type) == good
	}
	for _, c := range all {
		m, kind := typeMeaning(c.Type), wordsOf(c.Type)
		switch c.Status {
		case string(corev1.ConditionTrue):
			why := meaningOf(wordsOf(c.Reason), moving)
			if serves && slices.Equal(kind, []string{"progressing"}) && why < moving { // as on a Deployment that is complete
				m = mild
			}
		case string(corev1.ConditionFalse):
			switch {
			case slices.Equal(kind, []string{"succeeded"}):
				m = bad
			case m == good:
				m = moving
			case m == moving || m == silent:
				m = refusing(c.Reason)
			default:
				m = silent
			}
		case "": // a condition of Argo CD, which has no status
			if m != bad {
				m = silent
			}
		default: // Unknown, or a word of the controller
			if m != good {
				m = silent
			} else {
				m = moving
			}
		}
		out = append(out, sign{m, sentence(fmt.Sprintf("its condition %s is %s", c.Type, c.Status), c.Reason, c.Message)})
	}
	return out
}

// refusing returns the meaning of the reason of a condition that is False, where its type has none: bad if the reason
// names a failure.
func refusing(reason string) meaning {
	words := wordsOf(reason)
	if meaningOf(words, silent) == bad || slices.Contains(words, "failing") {
		return bad
	}
	return silent
}

// typeMeaning returns the meaning of a condition of that type that is True. The last known word of the type counts:
// RollingUpdateComplete.
func typeMeaning(kind string) meaning {
	words := wordsOf(kind)
	for n, word := range slices.Backward(words) {
		if m := meaningOf(words[max(0, n-1):n+1], silent); vocabulary[word] != silent {
			return m
		}
	}
	return silent
}

// telling are the last words of the names of fields with one word about the object. earlier are the first words of the
// names of fields about a former or a wanted state.
var (
	telling = []string{"phase", "state", "status", "health", "progress", "robustness"}
	earlier = []string{"desired", "target", "wanted", "expected", "previous", "last", "old", "initial", "next"}
)

// textSign returns the meaning of a field whose value is text.
func textSign(path, text, message string) sign {
	words := wordsOf(path)
	if len(words) == 0 || text == "" || slices.Contains(earlier, words[0]) {
		return sign{}
	}
	name := words[len(words)-1]
	if truth, err := strconv.ParseBool(text); err == nil {
		return flagSign(path, truth)
	}
	if has, want, ok := fraction(text); ok && vocabulary[name] == good {
		m := good
		if has < want {
			m = moving
		}
		return sign{m, fmt.Sprintf("its %s is %s", path, text)}
	}
	if vocabulary[words[0]] == bad && len(words) == 2 && (name == "reason" || name == "message") {
		return sign{bad, sentence("status."+path, text)}
	}
	if !slices.Contains(telling, name) {
		return sign{}
	}
	path = strings.TrimSuffix(path, ".status")
	return sign{meaningOf(wordsOf(text), moving), sentence(fmt.Sprintf("its %s is %s", path, text), message)}
}

// fraction reads 2/3.
func fraction(text string) (has, want int, ok bool) {
	a, b, found := strings.Cut(text, "/")
	has, err := strconv.Atoi(a)
	want, failed := strconv.Atoi(b)
	return has, want, found && err == nil && failed == nil
}

// flagSign returns the meaning of a field that is true or false. Only a name of one word is about the whole object.
func flagSign(path string, truth bool) sign {
	words := wordsOf(path)
	if len(words) == 2 && words[0] == "is" {
		words = words[1:]
	}
	if len(words) == 3 && slices.Equal(words[1:], []string{"to", "use"}) {
		words = words[:1]
	}
	if len(words) != 1 {
		return sign{}
	}
	m := vocabulary[words[0]]
	switch {
	case truth:
	case m == good:
		m = moving
	default:
		m = silent
	}
	return sign{m, fmt.Sprintf("status.%s is %t", path, truth)}
}

// runs are the last words of kinds whose objects are work that ends.
var runs = []string{"run", "job", "workflow", "backup", "restore", "task", "build", "migration", "experiment", "operation"}

// isRun reports whether an object is work that ends, by the name of its kind: CronJob and ScaledJob are not.
func isRun(o *unstructured.Unstructured) bool {
	words := wordsOf(o.GetKind())
	n := len(words)
	return n > 0 && slices.Contains(runs, words[n-1]) && (n == 1 || !slices.Contains([]string{"cron", "scaled", "scheduled"}, words[n-2]))
}
