package proof

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fault is what becomes of one request of the controller.
type fault string

// Faults of a request, be it a write or a read past the caches.
const (
	none          fault = ""
	conflict      fault = "409"
	throttled     fault = "429"
	serverError   fault = "500"
	lostRequest   fault = "time-out before it took effect"
	lostReply     fault = "time-out after it took effect"
	crashBefore   fault = "crash before it"
	crashAfter    fault = "crash after it"
	crashBehind   fault = "crash after it, and the next process begins with an old list"
	secondLeader  fault = "another controller takes over while it is on its way"
	outage        fault = "the API server is away for an hour"
	clockForwards fault = "the clock jumps an hour forwards"
	// A process measures what has passed by a clock that never goes back, whatever happens to the time of day. So a clock that is behind
	// is that of another process.
	clockBackwards fault = "crash after it, and the next process's clock is an hour behind"
)

// requestFaults are all of them, in the order in which they are tried.
var requestFaults = []fault{
	conflict, throttled, serverError, lostRequest, lostReply, crashBefore, crashAfter, crashBehind, secondLeader, outage, clockForwards, clockBackwards,
}

// errAway is what a client gets from a server that is away.
var errAway = errors.New("connection refused")

// wire is the way of one process's requests to the API server.
type wire struct {
	next    http.RoundTripper
	process *process

	sync.Mutex
	dead   bool
	resume chan struct{} // closed to let a held request go on
}

// RoundTrip sends a request, unless the fault that the history has for it says otherwise.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	h := w.process.history
	if strings.HasSuffix(r.URL.Path, "/events") { // they are sent at any time, and have no effect on a job
		return h.acceptEvent(r)
	}
	if w.isDead() || h.isAway() {
		return nil, errAway
	}
	f := h.faultOf(r)
	if f == conflict && r.Method == http.MethodGet { // no read meets one
		f = serverError
	}
	switch f {
	case conflict:
		return answer(r, http.StatusConflict, metav1.StatusReasonConflict)
	case throttled:
		return answer(r, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
	case serverError:
		return answer(r, http.StatusInternalServerError, metav1.StatusReasonInternalError)
	case lostRequest:
		return nil, errAway
	case crashBefore:
		w.die()
		return nil, errAway
	case lostReply, crashAfter, crashBehind, clockBackwards:
		response, err := w.send(r)
		if err == nil {
			_ = response.Body.Close()
		}
		if f != lostReply {
			h.setBehind(f == crashBehind)
			if f == clockBackwards {
				h.jump(-time.Hour)
			}
			w.die()
		}
		return nil, errAway
	case secondLeader:
		w.hold()
		if w.isDead() {
			return nil, errAway
		}
	case outage:
		h.setAway(true)
		return nil, errAway
	case clockForwards:
		h.jump(time.Hour)
	}
	return w.send(r)
}

// send sends a request, and waits until the watch has shown what it did.
func (w *wire) send(r *http.Request) (*http.Response, error) {
	h := w.process.history
	response, err := w.next.RoundTrip(r)
	if err != nil {
		h.fail("the API server does not answer: %v", err)
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	if response.StatusCode == http.StatusForbidden && bytes.Contains(body, []byte("User \\\""+operatorUser)) {
		h.fail("the operator's role does not allow %s %s", r.Method, r.URL.Path)
	}
	if r.Method != http.MethodGet {
		h.sent(r, response.StatusCode)
		if response.StatusCode < 300 {
			awaitEffect(h.chronicle, r.Method, body)
		}
	}
	return response, nil
}

// awaitEffect waits until a watch has shown what a request did.
func awaitEffect(c *chronicle, method string, body []byte) {
	var reply struct {
		Kind     string
		Metadata metav1.ObjectMeta
		Details  struct{ UID types.UID }
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		panic(fmt.Sprintf("the API server replies %q: %v", body, err))
	}
	grace := reply.Metadata.DeletionGracePeriodSeconds
	switch {
	case reply.Kind == "Status":
		c.awaitGone(reply.Details.UID)
	case reply.Kind == "Scale": // has the job's version
		c.await(reply.Metadata.UID, version(&metav1.PartialObjectMetadata{ObjectMeta: reply.Metadata}))
	case method == http.MethodDelete && (grace == nil || *grace == 0):
		c.awaitGone(reply.Metadata.UID)
	default:
		c.await(reply.Metadata.UID, version(&metav1.PartialObjectMetadata{ObjectMeta: reply.Metadata}))
	}
}

// hold keeps a request on its way until the test lets it go on.
func (w *wire) hold() {
	w.Lock()
	w.resume = make(chan struct{})
	resume := w.resume
	w.Unlock()
	w.process.queue.pause(true)
	<-resume
	w.process.queue.pause(false)
}

// goOn lets a held request go on.
func (w *wire) goOn() {
	w.Lock()
	defer w.Unlock()
	if w.resume != nil {
		close(w.resume)
		w.resume = nil
	}
}

func (w *wire) isHeld() bool {
	w.Lock()
	defer w.Unlock()
	return w.resume != nil
}

// die is the end of the process: from here on it has no effect on anything.
func (w *wire) die() {
	w.Lock()
	defer w.Unlock()
	w.dead = true
}

func (w *wire) isDead() bool {
	w.Lock()
	defer w.Unlock()
	return w.dead
}

// answer is the API server's answer to a request that it does not carry out.
func answer(r *http.Request, code int, reason metav1.StatusReason) (*http.Response, error) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "injected: " + string(reason),
	}
	body, err := json.Marshal(status)
	return reply(r, code, "application/json", body), err
}

// maxMessage is how many bytes the message of an event has at most.
const maxMessage = 1024

// acceptEvent accepts an event, if the API server would and a terminal can print it.
func (h *history) acceptEvent(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	var event struct{ Message string }
	if json.Unmarshal(body, &event) == nil && (len(event.Message) > maxMessage || isHarmful(event.Message)) {
		h.fail("an event says %q", event.Message)
	}
	return reply(r, http.StatusCreated, r.Header.Get("Content-Type"), body), err
}

func reply(r *http.Request, code int, contentType string, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": []string{contentType}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}
