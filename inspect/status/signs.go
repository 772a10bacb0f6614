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
			if former(name) {
				continue
			}
			message, _ := v["message"].(string)
			if vocabulary[strings.ToLower(name)] == bad && message != "" {
				out = append(out, sign{bad, sentence("status."+name, message)})
			}
			for _, inner := range slices.Sorted(maps.Keys(v)) {
				if text, ok := v[inner].(string); ok && !former(inner) {
					out = append(out, textSign(name+"."+inner, text, message))
				}
			}
		case []any:
			for _, part := range partsOf(status, name) {
				if errors, _ := part["errors"].([]any); len(errors) > 0 {
					out = append(out, sign{bad, fmt.Sprintf("status.%s has errors: %v", name, errors[0])})
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

// conditionLists returns the lists of conditions in a status and in its parts. A Gateway has one for each listener.
// A route has one for each parent, and none of its own.
func conditionLists(o map[string]any) [][]readiness.ObjectCondition {
	status := statusIn(o)
	out := [][]readiness.ObjectCondition{current(status)}
	for _, field := range slices.Sorted(maps.Keys(status)) {
		if former(field) {
			continue
		}
		for _, part := range partsOf(status, field) {
			out = append(out, readiness.Conditions(part))
		}
	}
	return out
}

// current returns the conditions of a status without conditions of earlier states. The operators of Percona append one
// for each state, whose type is the value of status.state.
func current(status map[string]any) []readiness.ObjectCondition {
	all := readiness.Conditions(status)
	state, _ := status["state"].(string)
	if n := len(all); n == 0 || state == "" || all[n-1].Type != state || state != strings.ToLower(state) {
		return all
	}
	last := len(all) - 1
	isState := func(c readiness.ObjectCondition) bool { return c.Type == strings.ToLower(c.Type) }
	return append(slices.DeleteFunc(slices.Clone(all[:last]), isState), all[last])
}

// conditionSigns returns the meanings of the conditions of an object.
func conditionSigns(o map[string]any) (out []sign) {
	all := conditionsOf(o)
	for _, c := range all {
		text := sentence(fmt.Sprintf("its condition %s is %s", c.Type, c.Status), c.Reason, c.Message)
		out = append(out, sign{conditionMeaning(c, all), text})
	}
	return out
}

// summaries are the types of conditions about the whole object.
var summaries = []string{"Ready", "Available", "Healthy", "Programmed"}

// isTrue reports whether there is a condition of one of the types, and all of them are True.
func isTrue(all []readiness.ObjectCondition, types ...string) bool {
	found := false
	for _, c := range all {
		if slices.Contains(types, c.Type) {
			if found = c.Status == string(corev1.ConditionTrue); !found {
				return false
			}
		}
	}
	return found
}

// conditionMeaning returns the meaning of a condition. all are the conditions of the object.
func conditionMeaning(c readiness.ObjectCondition, all []readiness.ObjectCondition) meaning {
	switch c.Status {
	case string(corev1.ConditionTrue):
		return trueMeaning(c, all)
	case string(corev1.ConditionFalse):
		return falseMeaning(c, all)
	case "": // a condition of Argo CD, which has no status
		if typeMeaning(c.Type) == bad {
			return bad
		}
		return silent
	case string(corev1.ConditionUnknown):
		if typeMeaning(c.Type) == good && (len(wordsOf(c.Type)) == 1 || !isTrue(all, summaries...)) {
			return moving
		}
		return silent // a feature that is not in use
	default: // a word of the controller
		if typeMeaning(c.Type) == good {
			return moving
		}
		if c.Type == "" { // Volcano appends one for each state
			return silent
		}
		return meaningOf(wordsOf(c.Status), silent)
	}
}

// trueMeaning returns the meaning of a condition that is True.
func trueMeaning(c readiness.ObjectCondition, all []readiness.ObjectCondition) meaning {
	m, kind, reason := typeMeaning(c.Type), wordsOf(c.Type), wordsOf(c.Reason)
	last := kind[max(0, len(kind)-1):]
	serves := func(c readiness.ObjectCondition) bool {
		return c.Status == string(corev1.ConditionTrue) && typeMeaning(c.Type) == good
	}
	switch {
	case slices.Equal(kind, []string{"progressing"}) && meaningOf(reason, moving) < moving && slices.ContainsFunc(all, serves):
		return mild // as on a Deployment that is complete
	case m != good:
		return m
	case slices.Equal(last, []string{"finished"}) && meaningOf(reason, silent) == bad:
		return bad // it has finished: Failed
	case slices.ContainsFunc(reason, negates) && meaningOf(reason, silent) == moving && (len(kind) == 1 || !unused(reason)):
		return moving // Accepted is True: ListenersNotValid
	case len(kind) > 1 && slices.Contains([]string{"ready", "available"}, last[0]):
		return mild // TargetReady: a part of the object, so work that ends has not ended
	}
	return m
}

// falseMeaning returns the meaning of a condition that is False. If an object is Ready, its controller does not wait
// for a part or a feature that is not.
func falseMeaning(c readiness.ObjectCondition, all []readiness.ObjectCondition) meaning {
	m, kind := typeMeaning(c.Type), wordsOf(c.Type)
	part := len(kind) > 1
	switch {
	case slices.Equal(kind, []string{"succeeded"}):
		return bad
	case part && slices.Contains(negations, kind[0]) && m < moving:
		if strings.HasPrefix(kind[1], "warning") {
			return silent
		}
		return max(moving, meaningOf(kind[1:], silent)) // NoErrors
	case m == bad || m == moving && !failing(c.Reason):
		return silent
	case part && unused(wordsOf(c.Reason)) && isTrue(all, summaries...):
		return silent
	case m == good && part && isTrue(all, "Ready") && !slices.Contains(kind, "all") && !failing(c.Reason):
		return mild
	case m == good:
		return moving
	case failing(c.Reason):
		return bad
	}
	return silent
}

// unused reports whether a reason is that a feature is not in use: TLSNotEnabled, NoListenerSetsAttached.
func unused(reason []string) bool {
	n := len(reason)
	switch {
	case n == 0:
		return false
	case reason[0] == "no", reason[0] == "unsupported", slices.Contains(reason, "disabled"):
		return true
	case slices.Equal(reason, []string{"not", "found"}):
		return true
	}
	return n > 1 && reason[n-2] == "not" && slices.Contains([]string{"enabled", "configured", "present", "requested", "required"}, reason[n-1])
}

// failing reports whether the reason of a condition names a failure.
func failing(reason string) bool {
	words := wordsOf(reason)
	return meaningOf(words, silent) == bad || slices.Contains(words, "failing")
}

// negates reports whether a word inverts or limits the next.
func negates(word string) bool {
	return slices.Contains(negations, word) || slices.Contains(limits, word)
}

// typeMeaning returns the meaning of a condition of that type that is True. The last known word of the type counts
// (RollingUpdateComplete), and a negation before it (NoDiskPressure).
func typeMeaning(kind string) meaning {
	words := wordsOf(kind)
	for n, word := range slices.Backward(words) {
		if vocabulary[word] == silent || word == "required" && n < len(words)-1 { // RequiredPackages
			continue
		}
		said := []string{word}
		if before := slices.IndexFunc(words[:n], negates); before >= 0 {
			said = []string{words[before], word}
		}
		return meaningOf(said, silent)
	}
	return silent
}

// telling are the last words of the names of fields with one word about the object. earlier are the first words of the
// names of fields about a former or a wanted state.
var (
	telling = []string{"phase", "state", "status", "health", "progress", "robustness", "result", "compliant"}
	earlier = []string{"desired", "target", "wanted", "expected", "previous", "last", "old", "initial", "next", "abort", "history"}
)

// former reports whether a field is about a former or a wanted state, or has no words.
func former(name string) bool {
	words := wordsOf(name)
	return len(words) == 0 || slices.Contains(earlier, words[0])
}

// textSign returns the meaning of a field whose value is text.
func textSign(path, text, message string) sign {
	words := wordsOf(path)
	if text == "" || former(path) {
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
