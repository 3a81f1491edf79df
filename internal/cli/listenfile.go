package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"hookglass/api"
	"hookglass/internal/listen"
)

// maxListenFile bounds the file.
const maxListenFile = 1 << 20

// listenFile is the file of --config, in the format of other tunnels' files: endpoints, each with its upstream. Flags
// take precedence.
type listenFile struct {
	Version   int            `yaml:"version"`
	Server    string         `yaml:"server"`
	Recover   string         `yaml:"recover"`
	Output    string         `yaml:"output"`
	ShowBody  bool           `yaml:"show_body"`
	Insecure  bool           `yaml:"insecure"`
	Chaos     string         `yaml:"chaos"`
	Endpoints []fileEndpoint `yaml:"endpoints"`
}

type fileEndpoint struct {
	Endpoint string            `yaml:"endpoint"` // its id or custom id
	Upstream upstream          `yaml:"upstream"`
	Exec     string            `yaml:"exec"` // instead of an upstream
	Routes   []fileRoute       `yaml:"routes"`
	Events   []string          `yaml:"events"`
	Provider string            `yaml:"provider"`
	When     string            `yaml:"when"`
	Headers  map[string]string `yaml:"headers"`
}

type fileRoute struct {
	Events   string   `yaml:"events"`
	Upstream upstream `yaml:"upstream"`
	Exec     string   `yaml:"exec"`
}

type upstream struct {
	URL string `yaml:"url"` // or a port
}

// readListenFile parses a file and reports where it is wrong.
func readListenFile(path string) (*listenFile, error) {
	text, err := readFile(path, maxListenFile)
	if err != nil {
		return nil, err
	}
	f := new(listenFile)
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(f); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s", path, yamlFault(err))
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) { // a second YAML document would be ignored
		return nil, fmt.Errorf("%s holds more than one document", path)
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func (f *listenFile) check() error {
	oneOf := func(key, value string, allowed ...string) error {
		if value != "" && !slices.Contains(allowed, value) {
			return fmt.Errorf("%s is one of %s, not %q", key, strings.Join(allowed, ", "), value)
		}
		return nil
	}
	if f.Version != 0 && f.Version != 1 {
		return fmt.Errorf("version %d is not known; this program knows 1", f.Version)
	}
	if len(f.Endpoints) == 0 {
		return errors.New("endpoints names none")
	}
	err := errors.Join(oneOf("recover", f.Recover, "all", "ask", "recent", "none"), oneOf("output", f.Output, "tui", "compact", "json", "quiet"))
	if f.Chaos != "" {
		_, bad := listen.ParseChaos(f.Chaos)
		err = errors.Join(err, bad)
	}
	for i := range f.Endpoints {
		e := &f.Endpoints[i]
		if e.Endpoint == "" {
			err = errors.Join(err, fmt.Errorf("endpoints[%d]: endpoint is missing: an id or custom id", i))
		}
		if _, bad := e.plan(listen.Endpoint{}); bad != nil {
			err = errors.Join(err, fmt.Errorf("endpoints[%d]: %w", i, bad))
		}
	}
	return err
}

// names returns the file's names of its endpoints.
func (f *listenFile) names() (all []string) {
	for _, e := range f.Endpoints {
		all = append(all, e.Endpoint)
	}
	return all
}

// entry finds the entry of an endpoint by a given name, its id or its custom id; nil if there is none.
func (f *listenFile) entry(name string, e api.Endpoint) *fileEndpoint {
	for i := range f.Endpoints {
		switch called := f.Endpoints[i].Endpoint; {
		case called == name, called == e.ID, e.CustomID != nil && called == *e.CustomID:
			return &f.Endpoints[i]
		}
	}
	return nil
}

// endpoint combines the flags for an endpoint with its entry.
func (f *listenFile) endpoint(e api.Endpoint, flags listen.Endpoint) (listen.Endpoint, error) {
	entry := f.entry(e.ID, e)
	if entry == nil {
		return flags, nil
	}
	return entry.plan(flags)
}

// target returns the target of an upstream or a command; nil if there is neither.
func target(up upstream, exec string) (*listen.Target, error) {
	switch {
	case up.URL != "" && exec != "":
		return nil, errors.New("upstream and exec exclude one another")
	case exec != "":
		to, err := listen.RunCommand(exec)
		return &to, err
	case up.URL != "":
		to, err := listen.ParseTarget(up.URL)
		if err != nil {
			err = fmt.Errorf("upstream: %w", err)
		}
		return &to, err
	}
	return nil, nil
}

// plan returns the entry overridden by flags.
func (e *fileEndpoint) plan(flags listen.Endpoint) (listen.Endpoint, error) {
	out := flags
	to, err := target(e.Upstream, e.Exec)
	if err != nil {
		return out, err
	}
	out.Target = cmp.Or(out.Target, to)
	for i, r := range e.Routes {
		to, err := target(r.Upstream, r.Exec)
		pattern := strings.TrimSpace(r.Events)
		switch {
		case err != nil:
			return out, fmt.Errorf("routes[%d]: %w", i, err)
		case to == nil || pattern == "":
			return out, fmt.Errorf("routes[%d]: it takes events, and an upstream or exec", i)
		}
		route := listen.Route{Events: pattern, Target: *to}
		out.Routes = append(out.Routes[:len(out.Routes):len(out.Routes)], route)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		field, err := headerField(name, e.Headers[name])
		if err != nil {
			return out, fmt.Errorf("headers: %w", err)
		}
		if !out.Headers.Has(name) {
			out.Headers = append(out.Headers[:len(out.Headers):len(out.Headers)], field)
		}
	}
	if len(out.Events) == 0 {
		out.Events = e.Events
	}
	out.Provider = cmp.Or(out.Provider, e.Provider)
	if out.When == nil && e.When != "" {
		if out.When, err = listenFilter(e.When); err != nil {
			return out, fmt.Errorf("when: %w", err)
		}
	}
	return out, nil
}

// fill sets from the file what no flag sets.
func (c *ListenCmd) fill(f *listenFile) {
	c.Server = cmp.Or(c.Server, f.Server)
	c.Recover = cmp.Or(c.Recover, f.Recover)
	c.Output = cmp.Or(c.Output, f.Output)
	c.Chaos = cmp.Or(c.Chaos, f.Chaos)
	c.ShowBody = c.ShowBody || f.ShowBody
	c.Insecure = c.Insecure || f.Insecure
}
