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
	status := statusIn(o.Object)
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

// conditionsOf returns all conditions in the status of an object.
func conditionsOf(o map[string]any) []readiness.ObjectCondition {
	return slices.Concat(conditionLists(o)...)
}

// conditionLists returns the lists of conditions in a status. In the Gateway API, a Gateway has one for each listener,
// too. A route or a policy has one for each parent or ancestor, and none of its own.
func conditionLists(o map[string]any) [][]readiness.ObjectCondition {
	status := statusIn(o)
	out := [][]readiness.ObjectCondition{readiness.Conditions(status)}
	for _, field := range []string{"listeners", "parents", "ancestors"} {
		for _, part := range partsOf(status, field) {
			out = append(out, readiness.Conditions(part))
		}
	}
	return out
}

// conditionSigns returns the meanings of the conditions of an object.
func conditionSigns(o map[string]any) (out []sign) {
	all := conditionsOf(o)
	serves := slices.ContainsFunc(all, func(c readiness.ObjectCondition) bool {
		return c.Status == string(corev1.ConditionTrue) && typeMeaning(c.Type) == good
	})
	for _, c := range all {
		text := sentence(fmt.Sprintf("its condition %s is %s", c.Type, c.Status), c.Reason, c.Message)
		out = append(out, sign{conditionMeaning(c, serves), text})
	}
	return out
}

// conditionMeaning returns the meaning of a condition. serves means that a condition of the object is True that
// means good.
func conditionMeaning(c readiness.ObjectCondition, serves bool) meaning {
	m, kind, reason := typeMeaning(c.Type), wordsOf(c.Type), wordsOf(c.Reason)
	switch c.Status {
	case string(corev1.ConditionTrue):
		switch {
		case serves && slices.Equal(kind, []string{"progressing"}) && meaningOf(reason, moving) < moving:
			return mild // as on a Deployment that is complete
		case m == good && slices.ContainsFunc(reason, negates) && meaningOf(reason, silent) == moving:
			return moving // Accepted is True: ListenersNotValid
		case len(kind) > 1 && m == good && slices.Contains([]string{"ready", "available"}, kind[len(kind)-1]):
			return mild // TargetReady: a part of the object, so work that ends has not ended
		}
		return m
	case string(corev1.ConditionFalse):
		switch {
		case slices.Equal(kind, []string{"succeeded"}):
			return bad
		case len(kind) > 1 && slices.Contains(negations, kind[0]) && m < moving:
			return max(moving, meaningOf(kind[1:], silent)) // NoErrors
		case m == good:
			return moving
		case m == moving || m == silent:
			return refusing(c.Reason)
		}
		return silent
	case "": // a condition of Argo CD, which has no status
		if m == bad {
			return bad
		}
		return silent
	default: // Unknown, or a word of the controller
		if m == good {
			return moving
		}
		return silent
	}
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

// negates reports whether a word inverts or limits the next.
func negates(word string) bool {
	return slices.Contains(negations, word) || slices.Contains(limits, word)
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
var runs = []string{
	"run", "job", "jobset", "rebalance", "workflow", "backup", "restore", "task", "build", "migration", "experiment", "operation",
}

// isRun reports whether an object is work that ends, by the name of its kind: CronJob and ScaledJob are not.
func isRun(o *unstructured.Unstructured) bool {
	words := wordsOf(o.GetKind())
	n := len(words)
	return n > 0 && slices.Contains(runs, words[n-1]) && (n == 1 || !slices.Contains([]string{"cron", "scaled", "scheduled"}, words[n-2]))
}
