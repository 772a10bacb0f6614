package fault

import "fmt"

// This file names the ways in which one request can fail.

// Mode is what happens to one mutating request.
type Mode int

const (
	// RequestLost fails like a connection that is refused: the server never hears of the request.
	RequestLost Mode = iota + 1
	// ResponseLost sends the request, which takes effect, and then fails as if the connection had ended before the answer.
	ResponseLost
	// Conflict answers 409 without sending the request.
	Conflict
	// Throttled answers 429 with the header Retry-After, without sending the request. client-go waits and sends it again
	// by itself, so the controller sees a slow request and no error.
	Throttled
	// Rejected answers 429 without that header, so the controller gets the error.
	Rejected
	// ServerError answers 500 without sending the request.
	ServerError
	// Hang answers nothing until the request's context ends or [Plan.HangFor] is over, and then fails as a timeout. The
	// server never hears of the request.
	Hang
	// KillBefore ends the process before the request is sent.
	KillBefore
	// KillAfter ends the process after the server has answered, before anybody has read the answer.
	KillAfter
	// Unseen is ResponseLost with caches that do not show what the request did: the events of its resource are held until
	// the manager has sent such a request again, or for [Plan.HoldFor]. A create that is repeated finds that its name is
	// taken.
	Unseen
	// KillStale is KillAfter with a next life that begins in the past: its caches list the state from before the request,
	// and learn nothing newer until it has written something, or for [Plan.HoldFor].
	KillStale
)

var modeNames = map[Mode]string{
	RequestLost:  "request lost",
	ResponseLost: "response lost",
	Conflict:     "409 conflict",
	Throttled:    "429 with Retry-After",
	Rejected:     "429 without Retry-After",
	ServerError:  "500",
	Hang:         "hang",
	KillBefore:   "kill before",
	KillAfter:    "kill after",
	Unseen:       "response lost unseen",
	KillStale:    "kill after and restart in the past",
}

// Modes returns all modes, in the order in which they are declared.
func Modes() []Mode {
	modes := make([]Mode, 0, len(modeNames))
	for m := RequestLost; m <= KillStale; m++ {
		modes = append(modes, m)
	}
	return modes
}

// String says the mode as reports do.
func (m Mode) String() string {
	if name, ok := modeNames[m]; ok {
		return name
	}
	return fmt.Sprintf("mode %d", int(m))
}

// Kills reports whether the process ends.
func (m Mode) Kills() bool { return m == KillBefore || m == KillAfter || m == KillStale }

// Sends reports whether the server sees the request, so that it takes effect.
func (m Mode) Sends() bool {
	return m == ResponseLost || m == KillAfter || m == Unseen || m == KillStale
}
