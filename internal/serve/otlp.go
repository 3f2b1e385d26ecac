package serve

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/config"
)

// otlp sends to one endpoint by OTLP over HTTP, with protobuf. The exporters of the SDK do the
// same, but bring gRPC along: each run of each command would load a program larger by 12 MiB.
type otlp struct {
	to      string
	headers http.Header
	gzip    bool
	timeout time.Duration // of a call, with all its repetitions
	repeat  time.Duration // wait before the first repetition, doubled each time
	client  *http.Client
	end     context.CancelFunc // ends the calls that run
	ended   context.Context
}

// Limits of OTLP.
const (
	otlpTimeout = 10 * time.Second // the default of the specification
	firstRepeat = time.Second      // default of otlp.repeat
	maxAnswer   = 200              // bytes of an answer that an error shows
)

// newOTLP reads the variables of a signal: traces or metrics.
func newOTLP(env config.Environment, signal string) (*otlp, error) {
	name := func(of string) string {
		if own := "OTEL_EXPORTER_OTLP_" + strings.ToUpper(signal) + "_" + of; env(own) != "" {
			return own
		}
		return "OTEL_EXPORTER_OTLP_" + of
	}
	s := &otlp{to: env(name("ENDPOINT")), headers: http.Header{}, timeout: otlpTimeout, repeat: firstRepeat,
		gzip: env(name("COMPRESSION")) == "gzip"}
	if name("ENDPOINT") == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		s.to = strings.TrimRight(s.to, "/") + "/v1/" + signal
	}
	for pair := range strings.SplitSeq(env(name("HEADERS")), ",") {
		key, value, found := strings.Cut(pair, "=")
		text, err := url.PathUnescape(strings.TrimSpace(value))
		switch {
		case strings.TrimSpace(pair) == "":
		case !found || err != nil:
			return nil, nixie.Errorf(nixie.CodeInvalid, "%s is no list of NAME=VALUE with commas between", name("HEADERS"))
		default:
			s.headers.Set(strings.TrimSpace(key), text)
		}
	}
	if text := env(name("TIMEOUT")); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms <= 0 {
			return nil, nixie.Errorf(nixie.CodeInvalid, "%s is %q: give milliseconds, such as 10000", name("TIMEOUT"), text)
		}
		s.timeout = time.Duration(ms) * time.Millisecond
	}
	secure, err := certificates(env(name("CERTIFICATE")), env(name("CLIENT_CERTIFICATE")), env(name("CLIENT_KEY")))
	if err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "certificates of OTLP: %w: the variables %s, %s and %s name files in PEM", err,
			name("CERTIFICATE"), name("CLIENT_CERTIFICATE"), name("CLIENT_KEY"))
	}
	s.client = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: secure, ForceAttemptHTTP2: true}}
	s.ended, s.end = context.WithCancel(context.Background())
	return s, nil
}

// certificates reads files in PEM form; without a name it keeps what the system trusts.
func certificates(trusted, own, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if trusted != "" {
		text, err := os.ReadFile(trusted)
		if err != nil {
			return nil, err
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate", trusted)
		}
	}
	if own != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(own, key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// send posts a message, and repeats what the other side says to repeat until the time is over.
func (s *otlp) send(ctx context.Context, m proto.Message) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	defer context.AfterFunc(s.ended, cancel)()
	body, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	if s.gzip {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(body) // to memory
		_ = w.Close()
		body = packed.Bytes()
	}
	for wait := s.repeat; ; wait *= 2 {
		later, err := s.post(ctx, body)
		if err == nil || later < 0 {
			return err
		}
		timer := time.NewTimer(cmp.Or(later, wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// post sends a body once. After an error it returns when to repeat: negative means never, 0 when
// the caller likes.
func (s *otlp) post(ctx context.Context, body []byte) (later time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.to, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	request.Header = s.headers.Clone()
	request.Header.Set("Content-Type", "application/x-protobuf")
	if s.gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if answer.StatusCode/100 == 2 {
		return 0, nil
	}
	err = nixie.Errorf(nixie.CodeUnavailable, "%s answers %s: %q", request.URL.Redacted(), answer.Status, text)
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return time.Duration(max(seconds, 0)) * time.Second, err
	}
	return -1, err
}

// Start implements the client of an exporter of traces.
func (s *otlp) Start(context.Context) error { return nil }

// Stop ends the calls that run.
func (s *otlp) Stop(context.Context) error {
	s.end()
	s.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans. TracesData has the same form as the request that a collector expects,
// whose package would bring gRPC.
func (s *otlp) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	return s.send(ctx, &tracepb.TracesData{ResourceSpans: spans})
}
