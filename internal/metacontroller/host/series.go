package host

import (
	"errors"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// This file removes what controller-runtime measured of a hosted controller that is gone. Its metrics and those of its queues
// are vectors that nobody can name from outside of it, and it knows controllers that come and none that go: some 80 series
// for each would stay for as long as the process lives.

// forgetSeries removes the series of the controller of that name from the registry, whatever their metric. Call it when its
// queue has ended, or they come back. Another manager in the same process that runs a controller of that name loses what it
// has counted so far.
func forgetSeries(name string) {
	families, _ := metrics.Registry.Gather() // what could be gathered is there beside the error
	for _, family := range families {
		var labels []string
		for _, m := range family.GetMetric()[:min(1, len(family.GetMetric()))] { // all have the same
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetName())
			}
		}
		if !slices.Contains(labels, "controller") || !strings.HasPrefix(family.GetName(), "controller_runtime_") &&
			!strings.HasPrefix(family.GetName(), "workqueue_") {
			continue
		}
		if v := vectorOf(prometheus.NewDesc(family.GetName(), family.GetHelp(), labels, nil)); v != nil {
			v.DeletePartialMatch(prometheus.Labels{"controller": name})
		}
	}
}

// vector is a metric with labels.
type vector interface {
	DeletePartialMatch(labels prometheus.Labels) int
}

// vectorOf returns the registered vector of that description. A registry shows its collectors to nobody, but who registers a
// description that is there already is given the collector that has it.
func vectorOf(desc *prometheus.Desc) vector {
	var taken prometheus.AlreadyRegisteredError
	if err := metrics.Registry.Register(description{desc}); !errors.As(err, &taken) {
		return nil
	}
	v, _ := taken.ExistingCollector.(vector)
	return v
}

// description is a collector that has a description and no metric.
type description struct{ desc *prometheus.Desc }

// Describe implements [prometheus.Collector].
func (d description) Describe(out chan<- *prometheus.Desc) { out <- d.desc }

// Collect implements [prometheus.Collector].
func (d description) Collect(chan<- prometheus.Metric) {}
