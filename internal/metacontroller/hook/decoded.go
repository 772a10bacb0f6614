package hook

import (
	"errors"
	"fmt"
)

// This file estimates what JSON takes in memory once it is decoded, without decoding it: [{},{},…] takes some twenty
// times its length, [{"a":1},…] fifty times. An answer is decoded only if there is enough memory for it (membudget.go).

// deepest is how deep the objects and lists of an answer may be nested. The deepest objects in use are schemas of CRDs,
// with some dozens of levels.
const deepest = 500

// What decoded values take, in bytes, with what the allocator rounds up and what is thrown away while a list or map
// grows. TestEstimate compares it with what the decoder really allocates.
const (
	valueSlot    = 48 // of a list, which doubles while it grows
	listItself   = 32 // its header
	boxed        = 8  // a number
	stringItself = 16 // its header
	emptyObject  = 64
	smallObject  = 384 // an object of up to 8 fields
	fieldSlot    = 160 // each field of a larger one
)

var errTooDeep = fmt.Errorf("its objects and lists are nested more than %d levels deep", deepest)

// container is an object or list that is not closed yet.
type container struct {
	object bool
	values int
}

// decodedSize estimates how many bytes the decoded body takes. It may be too high, by up to three times, but not too
// low. For invalid JSON it is any number: the decoder reports the error, and reads no more than was counted.
func decodedSize(body []byte) (int64, error) {
	var stack [deepest]container
	depth, size := 0, int64(0)
	begin := func() { // a value begins
		if depth > 0 {
			stack[depth-1].values++
		}
	}
	for i := 0; i < len(body); i++ {
		switch c := body[i]; c {
		case '{', '[':
			begin()
			if depth == deepest {
				return 0, errTooDeep
			}
			stack[depth] = container{object: c == '{'}
			depth++
		case '}', ']':
			if depth == 0 {
				return size, nil
			}
			depth--
			size += stack[depth].size()
		case '"':
			end := stringEnd(body, i+1)
			if length := end - i - 1; length > 0 { // the empty one is there already
				size += stringItself + int64(length+15)&^15
			}
			begin() // the name of a field as well, which is why container.size halves them
			i = end
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			begin()
			size += boxed
			for i+1 < len(body) && !delimits(body[i+1]) {
				i++
			}
		}
	}
	return size, nil
}

func (c container) size() int64 {
	n := int64(c.values)
	switch {
	case !c.object:
		return listItself + n*valueSlot
	case n == 0:
		return emptyObject
	case n <= 2*8: // names and values
		return smallObject
	default:
		return emptyObject + n/2*fieldSlot
	}
}

// stringEnd returns the index of the quote that ends a string, or of the last byte.
func stringEnd(body []byte, from int) int {
	for i := from; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(body) - 1
}

// delimits reports whether a byte ends a number, true, false or null.
func delimits(c byte) bool {
	switch c {
	case '{', '}', '[', ']', '"', ',', ':', ' ', '\t', '\r', '\n':
		return true
	default:
		return false
	}
}

// measure returns the decoded size of an answer, or why it is refused.
func measure(body []byte) (int64, *Error) {
	size, err := decodedSize(body)
	switch {
	case errors.Is(err, errTooDeep):
		return 0, &Error{Reason: Malformed, Err: fmt.Errorf("the answer cannot be used: %w", err)}
	case size > largest:
		return 0, &Error{Reason: TooLarge, Err: fmt.Errorf(
			"its answer of %d bytes would take about %d MiB of memory, and the limit is %d MiB: "+
				"answer fewer children, or children and a status of fewer fields", len(body), size>>20, int64(largest)>>20)}
	default:
		return size, nil
	}
}
