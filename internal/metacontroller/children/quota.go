package children

import (
	"net/http"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// This file reads refusals because of a quota. The API server gives the amounts in its text only.

// excess is one resource of an exhausted quota: what the request asks for, what all others have, and how much there may
// be.
type excess struct {
	Resource               string
	Requested, Used, Limit resource.Quantity
}

var exceeded = regexp.MustCompile(`exceeded quota: .*, requested: (.*), used: (.*), limited: (.*)$`)

// quota returns the resources of which err says that a quota has too little left. It returns none if err says no such
// thing, or says it in unknown words.
func quota(err error) []excess {
	s, ok := status(err)
	if !ok || s.Code != http.StatusForbidden {
		return nil
	}
	found := exceeded.FindStringSubmatch(s.Message)
	if found == nil {
		return nil
	}
	requested, used, limited := amounts(found[1]), amounts(found[2]), amounts(found[3])
	var out []excess
	for name, amount := range requested {
		was, there := used[name]
		limit, limits := limited[name]
		if !there || !limits {
			return nil
		}
		out = append(out, excess{name, amount, was, limit})
	}
	return out
}

// amounts reads "a=1,b=2Gi". It returns nothing if any of it cannot be read.
func amounts(text string) map[string]resource.Quantity {
	out := map[string]resource.Quantity{}
	for pair := range strings.SplitSeq(text, ",") {
		name, amount, _ := strings.Cut(pair, "=")
		q, err := resource.ParseQuantity(amount)
		if err != nil {
			return nil
		}
		out[name] = q
	}
	return out
}

// leaves reports whether the request fits once freed is free again.
func (e excess) leaves(freed resource.Quantity) bool {
	need := e.Requested.DeepCopy()
	need.Add(e.Used)
	need.Sub(freed)
	return need.Cmp(e.Limit) <= 0
}
