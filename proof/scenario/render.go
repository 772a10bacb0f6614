package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/kinds"
)

// This file writes a history as text for golden files: who did what to which object, without times, versions and
// hashes.

// Form is how a history is written.
type Form int

const (
	// Linear is a line for every write, in the order in which the store took them. It is for the simulation, where that is
	// always the same.
	Linear Form = iota
	// PerObject is a block for every object, in the order of their names, with what the manager and the user did to it.
	// It leaves out what depends on who is faster: statuses, and what the rest of the cluster does. It is for a real API
	// server.
	PerObject
)

// UserName is the user, or the user agent, in a [check.Entry] of what the script itself did.
const UserName = "user"

// Render writes a history as text.
func Render(h *check.History, form Form) string {
	r := &renderer{h: h, form: form, aliases: map[types.UID]string{}, taken: map[string]int{}, lines: map[string][]string{}}
	r.meet(h)
	for _, e := range h.Events {
		r.event(e)
	}
	if form == Linear {
		return strings.Join(r.linear, "")
	}
	var b strings.Builder
	for _, alias := range slices.Sorted(maps.Keys(r.lines)) {
		fmt.Fprintf(&b, "%s\n", alias)
		for _, line := range r.lines[alias] {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	return b.String()
}

type renderer struct {
	h       *check.History
	form    Form
	aliases map[types.UID]string
	taken   map[string]int
	// letters count the revisions of each parent, by UID.
	letters map[types.UID]int
	// hashes are the letters of revisions, by the label value that children carry and the parent's UID.
	hashes map[string]string
	linear []string
	lines  map[string][]string
}

// meet names the objects that were there from the beginning.
func (r *renderer) meet(h *check.History) {
	r.letters, r.hashes = map[types.UID]int{}, map[string]string{}
	for _, key := range slices.SortedFunc(maps.Keys(h.Initial), func(a, b check.Key) int { return cmp.Compare(a.String(), b.String()) }) {
		r.alias(key, h.Initial[key])
	}
}

// alias is the name of an object that is the same in every play.
func (r *renderer) alias(key check.Key, o client.Object) string {
	if alias, ok := r.aliases[o.GetUID()]; ok {
		return alias
	}
	alias := r.describe(key, o)
	r.taken[alias]++
	if n := r.taken[alias]; n > 1 {
		alias = fmt.Sprintf("%s, number %d", alias, n)
	}
	r.aliases[o.GetUID()] = alias
	return alias
}

func (r *renderer) describe(key check.Key, o client.Object) string {
	k, owner := kindOf(key), metav1.GetControllerOfNoCopy(o)
	switch {
	case owner == nil:
		return k.Word + " " + key.Name
	case k.Word == revisionWord:
		letter := string(rune('A' + r.letters[owner.UID]%26))
		r.letters[owner.UID]++
		for _, hash := range []string{o.GetName(), o.GetLabels()[appsv1.ControllerRevisionHashLabelKey]} {
			r.hashes[string(owner.UID)+"/"+hash] = letter
		}
		return "revision " + letter + " of " + owner.Name
	}
	at := ""
	if hash, ok := o.GetLabels()[appsv1.ControllerRevisionHashLabelKey]; ok {
		at = " at " + cmp.Or(r.hashes[string(owner.UID)+"/"+hash], "no revision")
	}
	switch node := nodeOf(o); {
	case owner.Kind == "DaemonSet" && node != "":
		return k.Word + " of " + owner.Name + " on " + node + at
	case o.GetGenerateName() != "" && owner.Kind != "StatefulSet":
		return k.Word + " of " + owner.Name + at
	}
	return k.Word + " " + key.Name + at
}

// kindOf is the kind of a resource.
func kindOf(key check.Key) kind {
	for _, o := range kinds.Objects() {
		if o.GVR.GroupResource() == key.Resource.GroupResource() {
			return kind{o}
		}
	}
	return kind{kinds.Object{Word: key.Resource.GroupResource().String(), GVR: key.Resource}}
}

// event writes one event, if it says something.
func (r *renderer) event(e check.Event) {
	who := r.who(e)
	alias := r.alias(e.Key, e.Object())
	k := kindOf(e.Key)
	verb, what := "changes", ""
	switch {
	case e.Type == check.Added:
		verb, what = "creates", created(k, e.New)
	case e.Type == check.Deleted:
		verb = "removes"
		if !going(e.Old) {
			verb = "deletes"
		}
	case !going(e.Old) && going(e.New):
		verb = "deletes"
	default:
		if what = r.changed(k, e); what == "" {
			return
		}
	}
	if r.form == PerObject {
		if who == "cluster" || verb == "removes" {
			return
		}
		r.lines[alias] = append(r.lines[alias], strings.TrimSuffix(fmt.Sprintf("%s %s: %s", who, verb, what), ": "))
		return
	}
	r.linear = append(r.linear, strings.TrimSuffix(fmt.Sprintf("%s %s %s: %s", who, verb, alias, what), ": ")+"\n")
}

// who did it.
func (r *renderer) who(e check.Event) string {
	switch {
	case e.By == nil:
		return "cluster"
	case e.By.User == UserName || e.By.UserAgent == UserName:
		return UserName
	case r.h.Manager == nil || r.h.Manager(e.By):
		return "manager"
	}
	return e.By.User
}

// created says what is worth knowing about a new object.
func created(k kind, o client.Object) string {
	image := imageOf(k, o)
	if k.Word == revisionWord {
		return strings.TrimSuffix("number "+numberOf(o)+", "+image, ", ")
	}
	return image
}

func imageOf(k kind, o client.Object) string {
	path := cmp.Or(k.Options["image"], k.Image)
	tree, err := treeOf(o)
	if err != nil || path == "" {
		return ""
	}
	value, err := getPath(tree, path)
	if err != nil {
		return ""
	}
	return text(value)
}

// changed says in words what a write changed, "" if nothing that is worth a line.
func (r *renderer) changed(k kind, e check.Event) string {
	out := append(ownerChanges(e.Old, e.New), labelChanges(e.Old.GetLabels(), e.New.GetLabels())...)
	if was, is := ready(e.Old), ready(e.New); was != is {
		out = append(out, map[bool]string{true: "ready", false: "not ready"}[is])
	}
	old, err := treeOf(e.Old)
	if err != nil {
		return err.Error()
	}
	now, err := treeOf(e.New)
	if err != nil {
		return err.Error()
	}
	switch k.Word {
	case podWord:
		differ("status.phase", path(old, "status.phase"), path(now, "status.phase"), &out)
	case "node":
		return "" // heartbeats and taints
	case revisionWord:
		differ("number", old["revision"], now["revision"], &out)
		differ("data", old["data"], now["data"], &out)
	default:
		differ("spec", old["spec"], now["spec"], &out)
		if r.form == Linear {
			differ("status", old["status"], now["status"], &out)
		}
	}
	for i := range out {
		out[i] = k.short(out[i])
	}
	return strings.Join(out, ", ")
}
