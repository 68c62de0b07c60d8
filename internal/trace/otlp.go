package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// What follows is OTLP's JSON, as https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding defines it.

type export struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource   resource     `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
}

type resource struct {
	Attributes []attribute `json:"attributes"`
}

type scopeSpans struct {
	Scope struct {
		Name string `json:"name"`
	} `json:"scope"`
	Spans []span `json:"spans"`
}

type span struct {
	Trace      string      `json:"traceId"`
	ID         string      `json:"spanId"`
	Parent     string      `json:"parentSpanId,omitempty"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes []attribute `json:"attributes"`
	Status     *status     `json:"status,omitempty"`
}

type status struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type attribute struct {
	Key   string `json:"key"`
	Value struct {
		String string `json:"stringValue"`
	} `json:"value"`
}

const (
	kindInternal = 1
	statusError  = 2
)

// OTLP is the request that sends spans to a collector.
func OTLP(spans []Span) ([]byte, error) {
	scope := scopeSpans{Spans: []span{}}
	scope.Scope.Name = "trainyard"
	for _, s := range spans {
		out := span{
			Trace: s.Trace, ID: s.ID, Parent: s.Parent, Name: s.Name, Kind: kindInternal,
			Start: strconv.FormatInt(s.Start.UnixNano(), 10), End: strconv.FormatInt(s.End.UnixNano(), 10), Attributes: attributes(s.Attributes),
		}
		if s.Failure != "" {
			out.Status = &status{statusError, s.Failure}
		}
		scope.Spans = append(scope.Spans, out)
	}
	return json.Marshal(export{[]resourceSpans{{resource{attributes([][2]string{{"service.name", "trainyard"}})}, []scopeSpans{scope}}}})
}

func attributes(pairs [][2]string) []attribute {
	all := make([]attribute, len(pairs))
	for i, pair := range pairs {
		all[i].Key, all[i].Value.String = pair[0], pair[1]
	}
	return all
}

// Send sends spans to a collector's address for OTLP over HTTP, as in http://localhost:4318.
func Send(ctx context.Context, address string, spans []Span) error {
	body, err := OTLP(spans)
	if err != nil {
		return err
	}
	to := strings.TrimSuffix(address, "/") + "/v1/traces"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("sending the trace: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	said, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("sending the trace: %s answers %s: %s", to, response.Status, bytes.TrimSpace(said))
	}
	return nil
}
