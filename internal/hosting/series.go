package hosting

import (
	"errors"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// This file removes controller-runtime's metrics of a hosted controller that was deleted. Those and the metrics of its
// queues are vectors that controller-runtime does not export, and it never deletes series of a controller: some 80 of
// them would stay for as long as the process lives.

// forgetSeries removes the series of the controller of that name from the registry, whatever their metric. Call it when
// its queue has ended, or they come back. If another manager in the same process runs a controller of that name, that
// one's counts are lost.
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

// vectorOf returns the registered vector of that description. A registry does not list its collectors, but registering
// an existing description returns the collector that has it.
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
