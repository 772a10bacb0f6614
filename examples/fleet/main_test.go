package main

import (
	"slices"
	"testing"

	v1 "example.com/fleet/api/v1"
)

func TestChildren(t *testing.T) {
	fleet := &v1.Fleet{Spec: v1.FleetSpec{Replicas: 2}}
	fleet.Name = "web"
	wanted, err := children(fleet)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range wanted {
		names = append(names, o.GetName())
	}
	if want := []string{"web", "web-0", "web-1"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}
