package fault

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"mime"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"
)

// This file takes the body of a watch apart into its events, without decoding them: bytes in, bytes out.

// maxFrame bounds one event: etcd takes no object over 1.5 MiB.
const maxFrame = 16 << 20

// frames reads one event after the other.
type frames func() ([]byte, error)

// split returns a reader of the events in a body, and the media type for events that are added; false if the stream is
// of a kind that is not known here.
func split(contentType string, body io.Reader) (frames, runtime.SerializerInfo, bool) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, runtime.SerializerInfo{}, false
	}
	info, ok := runtime.SerializerInfoForMediaType(clientgoscheme.Codecs.SupportedMediaTypes(), mediaType)
	switch {
	case ok && mediaType == runtime.ContentTypeJSON:
		return splitJSON(body), info, true
	case ok && mediaType == runtime.ContentTypeProtobuf:
		return splitProtobuf(body), info, true
	}
	return nil, runtime.SerializerInfo{}, false
}

func splitJSON(body io.Reader) frames {
	decoder := json.NewDecoder(body)
	return func() ([]byte, error) {
		var event json.RawMessage
		if err := decoder.Decode(&event); err != nil {
			return nil, err
		}
		return append(bytes.Clone(event), '\n'), nil
	}
}

// splitProtobuf knows that an event follows its length, in four bytes.
func splitProtobuf(body io.Reader) frames {
	buffered := bufio.NewReader(body)
	return func() ([]byte, error) {
		var head [4]byte
		if _, err := io.ReadFull(buffered, head[:]); err != nil {
			return nil, err
		}
		length := binary.BigEndian.Uint32(head[:])
		if length > maxFrame {
			return nil, fmt.Errorf("a watch event of %d bytes", length)
		}
		event := make([]byte, len(head)+int(length))
		copy(event, head[:])
		if _, err := io.ReadFull(buffered, event[len(head):]); err != nil {
			return nil, err
		}
		return event, nil
	}
}

// expired is the event with which the server ends a watch whose resource version is too old.
func expired(info runtime.SerializerInfo) ([]byte, error) {
	status := apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old. (" + errInjected.Error() + ")").ErrStatus
	var b bytes.Buffer
	encoder := restwatch.NewEncoder(
		streaming.NewEncoder(info.StreamSerializer.NewFrameWriter(&b), info.StreamSerializer.Serializer),
		clientgoscheme.Codecs.EncoderForVersion(info.Serializer, metav1.Unversioned),
	)
	if err := encoder.Encode(&watch.Event{Type: watch.Error, Object: &status}); err != nil {
		return nil, fmt.Errorf("encode the end of a watch as %s: %w", info.MediaType, err)
	}
	return b.Bytes(), nil
}
