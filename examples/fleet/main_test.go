package main

import (
	"fmt"
	"slices"
	"testing"

	v1 "example.com/fleet/api/v1"
)

func TestChildren(t *testing.T) {
	for name, c := range map[string]struct {
		replicas int32
		want     []string
	}{
		"no pods":    {0, []string{"*v1.Service web"}},
		"three pods": {3, []string{"*v1.Service web", "*v1.Pod web-0", "*v1.Pod web-1", "*v1.Pod web-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := &v1.Fleet{Spec: v1.FleetSpec{Replicas: c.replicas}}
			fleet.Name = "web"
			wanted, err := children(fleet)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range wanted {
				got = append(got, fmt.Sprintf("%T %s", o, o.GetName()))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
