package cronjob

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
)

// This file says when Jobs are due. It is pure; what a schedule in the syntax of cron means is the library's.

// schedule are the times at which Jobs are due.
type schedule struct {
	cron.Schedule

	// every is the interval of a schedule that counts from a start ("@every 1h"), zero for one that names times of the
	// day.
	every time.Duration
}

// scheduleError says why no Job can be started before somebody edits the CronJob.
type scheduleError struct{ reason, message string }

// parse reads the schedule of a CronJob in its time zone. Without one it is that of this process, as for the built-in
// controller.
func parse(spec *batchv1.CronJobSpec) (schedule, *scheduleError) {
	text := spec.Schedule
	if zone := spec.TimeZone; zone != nil {
		if _, err := time.LoadLocation(*zone); err != nil {
			return schedule{}, &scheduleError{"UnknownTimeZone", fmt.Sprintf("invalid timeZone: %q: %v", *zone, err)}
		}
		if !namesZone(spec) {
			text = "TZ=" + *zone + " " + text
		}
	}
	times, err := parsed(text)
	if err != nil {
		return schedule{}, &scheduleError{"UnparseableSchedule", fmt.Sprintf("unparseable schedule: %q: %v", spec.Schedule, err)}
	}
	out := schedule{Schedule: times}
	if interval, ok := times.(cron.ConstantDelaySchedule); ok {
		out.every = interval.Delay
	}
	return out, nil
}

// namesZone reports whether a schedule names a time zone itself. The API server accepts that of old CronJobs only.
func namesZone(spec *batchv1.CronJobSpec) bool { return strings.Contains(spec.Schedule, "TZ") }

// parsed is the library's parser, which panics on some texts ("TZ=0").
func parsed(text string) (out cron.Schedule, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return cron.ParseStandard(text)
}

// never reports whether no time after one is ever due ("0 0 31 2 *").
func (s schedule) never(after time.Time) bool { return s.Next(after).IsZero() }

// latest returns the latest time that is due after one time and not after another one, zero if there is none.
func (s schedule) latest(after, now time.Time) time.Time {
	first := s.Next(after)
	if first.IsZero() || first.After(now) {
		return time.Time{}
	}
	if s.every > 0 {
		return first.Add(now.Sub(first).Truncate(s.every))
	}
	// The later one looks from, the later is the next time: between from, whose next time has come, and to, whose next
	// time has not, there is the latest one.
	from, to := after, now
	for to.Sub(from) > time.Second {
		middle := from.Add(to.Sub(from) / 2)
		if next := s.Next(middle); next.IsZero() || next.After(now) {
			to = middle
		} else {
			from = middle
		}
	}
	return s.Next(from)
}

// count returns how many times are due after one time, not before from and not after now, but no more than most.
func (s schedule) count(after, from, now time.Time, most int) int {
	if s.every > 0 {
		first := s.Next(after)
		if late := from.Sub(first); late > 0 {
			first = first.Add((late + s.every - 1).Truncate(s.every))
		}
		if first.After(now) {
			return 0
		}
		return int(min(now.Sub(first)/s.every+1, time.Duration(most)))
	}
	if before := from.Add(-time.Nanosecond); before.After(after) {
		after = before
	}
	n := 0
	for at := s.Next(after); n < most && !at.IsZero() && !at.After(now); at = s.Next(at) {
		n++
	}
	return n
}

// next returns the first time that is due after now, counted from after where that makes a difference. It is zero if
// there is none.
func (s schedule) next(after, now time.Time) time.Time {
	if s.every == 0 {
		return s.Next(now)
	}
	if last := s.latest(after, now); !last.IsZero() {
		return s.Next(last)
	}
	return s.Next(after)
}
