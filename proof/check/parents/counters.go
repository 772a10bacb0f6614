package parents

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file compares the counters of a status, for all kinds that have some.

// counters collects what is wrong with a status.
type counters struct{ found []string }

func (c *counters) notef(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

func (c *counters) negative(name string, value int32) {
	if value < 0 {
		c.notef("%s is %d", name, value)
	}
}

func (c *counters) atMost(lower string, a int32, upper string, b int32) {
	if a > b {
		c.notef("%s is %d, and %s only %d", lower, a, upper, b)
	}
}

func (c *counters) same(one string, a int32, other string, b int32, why string) {
	if a != b {
		c.notef("%s is %d and %s is %d, and %s", one, a, other, b, why)
	}
}

func (c *counters) is(name string, said, counted int32) {
	if said != counted {
		c.notef("%s is %d and should be %d", name, said, counted)
	}
}

func (c *counters) generation(parent client.Object, observed int64) {
	if observed > parent.GetGeneration() {
		c.notef("generation %d is observed, and there are only %d", observed, parent.GetGeneration())
	}
}
