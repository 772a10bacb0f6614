package manager

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// This file takes Metacontroller's flags, so that a script that starts it needs only another name. They are not in the
// help: docs/metacontroller.md lists them.

// renamed are flags of Metacontroller that are called differently here.
var renamed = map[string]string{
	"client-go-burst":           "kube-api-burst",
	"client-go-qps":             "kube-api-qps",
	"leader-election":           "leader-elect",
	"leader-election-id":        "leader-elect-id",
	"leader-election-namespace": "leader-elect-namespace",
	"metrics-address":           "metrics-bind-address",
	"pprof-address":             "pprof-bind-address",
}

// idle are flags of Metacontroller that there is nothing to set with, and why.
var idle = map[string]string{
	"cache-flush-interval": "caches are kept by watches and need no flushing; resyncPeriodSeconds looks at parents again",
	"discovery-interval":   "the API server is asked about a resource when a controller names it",
	"events-burst":         "events that repeat are one event with a count",
	"events-qps":           "events that repeat are one event with a count",
	"zap-stacktrace-level": "logs hold no stack traces",
	"zap-time-encoding":    "times are as --log-format writes them",
}

// addMetacontroller adds its flags to those that are there.
func (f *flags) addMetacontroller(fs *pflag.FlagSet) {
	for alias, name := range renamed {
		same := fs.Lookup(name)
		fs.VarPF(same.Value, alias, "", "the same as --"+name).NoOptDefVal = same.NoOptDefVal
	}
	// A value that Metacontroller would refuse is refused here, too.
	fs.Duration("cache-flush-interval", 30*time.Minute, "")
	fs.Duration("discovery-interval", 30*time.Second, "")
	fs.Float64("events-qps", 1./300, "")
	fs.Int("events-burst", 25, "")
	fs.String("zap-stacktrace-level", "", "")
	fs.String("zap-time-encoding", "", "")
	decided := map[string]func(string) error{
		"leader-election-resource-lock": func(kind string) error {
			if kind != "leases" {
				return fmt.Errorf("there is no lock of the kind %q; there are: leases", kind)
			}
			return nil
		},
		"zap-encoder":   f.zapEncoder,
		"zap-log-level": f.zapLogLevel,
	}
	for name, decide := range decided {
		fs.Func(name, "", decide)
	}
	fs.BoolFunc("zap-devel", "", func(text string) error {
		devel, err := strconv.ParseBool(text)
		if devel {
			f.logLevel, f.logFormat = "debug", "text"
		}
		return err
	})
	for _, name := range slices.Concat(slices.Collect(maps.Keys(renamed)), slices.Collect(maps.Keys(idle)),
		slices.Collect(maps.Keys(decided)), []string{"zap-devel"}) {
		fs.Lookup(name).Hidden = true
	}
}

// unheeded returns the flags that were set and change nothing, with the reasons.
func unheeded(fs *pflag.FlagSet) map[string]string {
	out := map[string]string{}
	fs.Visit(func(f *pflag.Flag) {
		if why, ok := idle[f.Name]; ok {
			out[f.Name] = why
		}
	})
	return out
}

func (f *flags) applyStrategy(strategy string) error {
	switch strategy {
	case "dynamic-apply", "server-side-apply":
		f.serverSide = strategy == "server-side-apply"
		return nil
	default:
		return errors.New("there is no such strategy; there are: dynamic-apply, server-side-apply")
	}
}

func (f *flags) zapEncoder(encoder string) error {
	format, ok := map[string]string{"console": "text", "json": "json"}[encoder]
	if !ok {
		return errors.New("there is no such encoder; there are: console, json")
	}
	f.logFormat = format
	return nil
}

func (f *flags) zapLogLevel(level string) error {
	switch level {
	case "debug", "info", "error":
		f.logLevel = level
	case "panic":
		f.logLevel = "error"
	default:
		n, err := strconv.Atoi(level)
		if err != nil || n <= 0 {
			return errors.New("there is no such level; there are: debug, info, error, panic, and numbers from 1 up")
		}
		f.verbosity = n
	}
	return nil
}
