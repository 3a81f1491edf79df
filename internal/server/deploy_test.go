package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"hookglass"
	"hookglass/internal/server"
)

// What is given away for running the service is held to what the service is: a variable, a port, a path or a figure
// that is not there is found here.

const deploy = "../../deploy"

// variables are those of the configuration, with what belongs to other commands of the service.
func variables(t *testing.T) []string {
	t.Helper()
	known := []string{"HOOKGLASS_MIGRATE_TO", "HOOKGLASS_SMTP_RELAY_PASSWORD", "HOOKGLASS_DATABASE_PASSWORD"} // the last is of compose.yaml itself
	var read func(reflect.Type)
	read = func(s reflect.Type) {
		for f := range s.Fields() {
			if f.Anonymous {
				read(f.Type)
			} else if name := f.Tag.Get("env"); name != "" {
				known = append(known, strings.Split(name, ",")...)
			}
		}
	}
	read(reflect.TypeFor[server.Config]())
	if len(known) < 20 {
		t.Fatalf("only %d variables are known", len(known))
	}
	return known
}

// each visits the files of deploy and the documents of running the service.
func each(t *testing.T, visit func(name, text string)) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(deploy, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		files++
		visit(name, string(text))
		return err
	})
	if err != nil || files < 15 {
		t.Fatalf("%d files: %v", files, err)
	}
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	visit("docs/operations.md", string(text))
}

func TestDeploymentNamesVariablesAndFlagsThatThereAre(t *testing.T) {
	known := variables(t)
	variable := regexp.MustCompile(`HOOKGLASS_[A-Z_]*[A-Z]`)
	each(t, func(name, text string) {
		for _, v := range variable.FindAllString(text, -1) {
			if !slices.Contains(known, v) {
				t.Errorf("%s: there is no variable %s", name, v)
			}
		}
	})
	// A flag stands with its variable: --tls-cert is HOOKGLASS_TLS_CERT.
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	others := []string{"--json", "--email", "--without-keys", "--force", "--path-as-is", "--profile", "--now", "--help", "--to", "--account", "--plan", "--purge", "--cacert", "--build", "--read-only", "--prepare", "--server", "--password-stdin", "--join", "--id", "--level", "--workspace", "--scopes", "--expires-in", "--subscription", "--payment-method", "--no-owner", "--role"}
	for _, f := range regexp.MustCompile("(?:^|[ `(])(--[a-z][a-z-]+)").FindAllStringSubmatch(string(text), -1) {
		v := "HOOKGLASS_" + strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(f[1], "--"), "-", "_"))
		if !slices.Contains(known, v) && !slices.Contains(others, f[1]) {
			t.Errorf("docs/operations.md: there is no flag %s", f[1])
		}
	}
}

// object is a document of YAML.
type object map[string]any

// at follows names and numbers into a document.
func (o object) at(t *testing.T, path ...any) any {
	t.Helper()
	var v any = map[string]any(o)
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok || m[p] == nil {
				t.Fatalf("%v: there is no %s in it", path, p)
			}
			v = m[p]
		case int:
			l, ok := v.([]any)
			if !ok || len(l) <= p {
				t.Fatalf("%v: there is no %d in it", path, p)
			}
			v = l[p]
		}
	}
	return v
}

func manifests(t *testing.T) map[string]object {
	t.Helper()
	kust, err := os.ReadFile(deploy + "/kubernetes/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Resources []string }
	if err := yaml.Unmarshal(kust, &list); err != nil {
		t.Fatal(err)
	}
	all := map[string]object{}
	for _, name := range list.Resources {
		text, err := os.ReadFile(filepath.Join(deploy, "kubernetes", name))
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewDecoder(bytes.NewReader(text))
		for {
			var plain map[string]any // a type of our own would be that of the maps within as well
			if err := decoder.Decode(&plain); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			o := object(plain)
			all[o.at(t, "kind").(string)+"/"+o.at(t, "metadata", "name").(string)] = o
		}
	}
	return all
}

func TestManifestsFitEachOther(t *testing.T) {
	all := manifests(t)
	node := all["Deployment/hookglass"]
	ports := map[string]int{}
	for _, p := range node.at(t, "spec", "template", "spec", "containers", 0, "ports").([]any) {
		ports[p.(map[string]any)["name"].(string)] = p.(map[string]any)["containerPort"].(int)
	}
	env := map[string]string{}
	for _, e := range node.at(t, "spec", "template", "spec", "containers", 0, "env").([]any) {
		value, _ := e.(map[string]any)["value"].(string)
		env[e.(map[string]any)["name"].(string)] = value
	}
	for name, variable := range map[string]string{"http": "HOOKGLASS_LISTEN", "smtp": "HOOKGLASS_SMTP_LISTEN", "metrics": "HOOKGLASS_METRICS_LISTEN"} {
		if _, port, _ := strings.Cut(env[variable], ":"); port == "" || port != jsonOf(ports[name]) {
			t.Errorf("the port %s is %d, and %s is %s", name, ports[name], variable, env[variable])
		}
	}
	for probe, path := range map[string]string{"readinessProbe": "/readyz", "livenessProbe": "/healthz"} {
		if got := node.at(t, "spec", "template", "spec", "containers", 0, probe, "httpGet", "path"); got != path {
			t.Errorf("%s asks %v", probe, got)
		}
		if got := node.at(t, "spec", "template", "spec", "containers", 0, probe, "httpGet", "port"); got != "http" {
			t.Errorf("%s asks at %v", probe, got)
		}
	}
	if n := node.at(t, "spec", "replicas").(int); n < 2 || all["PodDisruptionBudget/hookglass"].at(t, "spec", "minAvailable").(int) >= n {
		t.Error("no node may go, or there is one alone")
	}
	security := node.at(t, "spec", "template", "spec", "containers", 0, "securityContext").(map[string]any)
	if security["readOnlyRootFilesystem"] != true || security["allowPrivilegeEscalation"] != false || node.at(t, "spec", "template", "spec", "securityContext", "runAsNonRoot") != true {
		t.Errorf("the node may do too much: %v", security)
	}
	for name, o := range all {
		if !strings.HasPrefix(name, "Service/") {
			continue
		}
		for _, p := range o.at(t, "spec", "ports").([]any) {
			if target := p.(map[string]any)["targetPort"].(string); ports[target] == 0 {
				t.Errorf("%s leads to a port %s", name, target)
			}
		}
		if o.at(t, "spec", "selector", "app.kubernetes.io/name") != node.at(t, "spec", "template", "metadata", "labels", "app.kubernetes.io/name") {
			t.Errorf("%s selects other pods", name)
		}
	}
	for name, redirected := range map[string]map[string]string{
		"Ingress/hookglass":           {"/": "true"},                         // a password in the clear goes no further
		"Ingress/hookglass-reception": {"/hooks": "false", "/mail": "false"}, // a webhook that is redirected is lost
	} {
		ingress := all[name]
		paths := ingress.at(t, "spec", "rules", 0, "http", "paths").([]any)
		if len(paths) != len(redirected) {
			t.Errorf("%s has %d paths", name, len(paths))
		}
		for _, p := range paths {
			path := object(p.(map[string]any))
			if service := path.at(t, "backend", "service", "name").(string); all["Service/"+service] == nil {
				t.Errorf("%s leads to %s", name, service)
			}
			got := ingress.at(t, "metadata", "annotations").(map[string]any)["nginx.ingress.kubernetes.io/ssl-redirect"]
			if got != redirected[path.at(t, "path").(string)] {
				t.Errorf("%s redirects %s to https: %v", name, path["path"], got)
			}
		}
	}
	secret := all["Secret/hookglass"].at(t, "stringData").(map[string]any)
	if secret["HOOKGLASS_DATABASE_URL"] == nil || secret["keys.json"] == nil {
		t.Errorf("the secret holds %v", secret)
	}
}

// A probe that fails ends the process, except for readiness: none may ask /readyz, which waits for the database and for
// the schema.
func TestAPodIsNotEndedWhileItWaitsForItsDatabase(t *testing.T) {
	container := manifests(t)["Deployment/hookglass"].at(t, "spec", "template", "spec", "containers", 0).(map[string]any)
	for _, probe := range []string{"startupProbe", "livenessProbe"} {
		if asks, there := container[probe]; there && strings.Contains(jsonOf(asks), "/readyz") {
			t.Errorf("%s asks /readyz", probe)
		}
	}
}

// A volume belongs to root and is open to its group and others, and nobody in the pod may change that.
func TestTheDataDirectoryOfAPodIsPrivate(t *testing.T) {
	pod := manifests(t)["Deployment/hookglass"]
	mounted := t.TempDir()
	if err := os.Chmod(mounted, 0o777); err != nil {
		t.Fatal(err)
	}
	secret := t.TempDir()
	if err := os.WriteFile(secret+"/keys.json", []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("/secret", secret, "/data", mounted)
	command := pod.at(t, "spec", "template", "spec", "initContainers", 0, "command").([]any)
	for range 2 { // a container that is started again finds what the last one made
		if out, err := exec.CommandContext(t.Context(), command[0].(string), command[1].(string), here.Replace(command[2].(string))).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, e := range pod.at(t, "spec", "template", "spec", "containers", 0, "env").([]any) {
		if e.(map[string]any)["name"] != "HOOKGLASS_DATA" {
			continue
		}
		data := here.Replace(e.(map[string]any)["value"].(string))
		for _, path := range []string{data, data + "/keys.json"} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v %v", path, info, err)
			}
		}
	}
}

func jsonOf(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

func TestTheImageRunsAsItShould(t *testing.T) {
	text, err := os.ReadFile(deploy + "/docker/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, image, ok := strings.Cut(string(text), "FROM scratch\n")
	if !ok {
		t.Fatal("the image is not made from scratch")
	}
	for _, want := range []string{
		"USER 65532:65532\n", "VOLUME /data\n", "HOOKGLASS_DATA=/data", "HOOKGLASS_LISTEN=0.0.0.0:8080", "EXPOSE 8080 2525\n", "STOPSIGNAL SIGTERM\n",
		`CMD ["/hookglass", "health"]`, `ENTRYPOINT ["/hookglass"]`, `CMD ["serve"]`,
	} {
		if !strings.Contains(image, want) {
			t.Errorf("the image lacks %q", want)
		}
	}
	for _, name := range []string{"docker/compose.yaml", "package/nfpm.yaml", "proxies/traefik.yaml"} {
		text, err := os.ReadFile(filepath.Join(deploy, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, &object{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	ignored, err := os.ReadFile("../../.dockerignore")
	if err != nil || !strings.HasPrefix(string(ignored), "*\n") {
		t.Errorf("what goes into an image is not named: %v", err)
	}
}

// A package of each kind has each completion once, where the shells of its systems look.
func TestCompletionsAreWhereShellsLook(t *testing.T) {
	text, err := os.ReadFile(deploy + "/package/nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Contents []struct{ Src, Dst, Packager string }
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	for kind, zsh := range map[string]string{"deb": "/usr/share/zsh/vendor-completions/_hookglass", "rpm": "/usr/share/zsh/site-functions/_hookglass"} {
		var got []string
		for _, c := range config.Contents {
			if (c.Packager == "" || c.Packager == kind) && (strings.Contains(c.Dst, "completions") || strings.Contains(c.Dst, "/zsh/")) {
				got = append(got, c.Dst)
			}
		}
		want := []string{"/usr/share/bash-completion/completions/hookglass", zsh, "/usr/share/fish/vendor_completions.d/hookglass.fish"}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", kind, got)
		}
	}
}

// What systemd gives the service, a command gets as well.
func TestACommandOfTheServiceHasTheServicesConfiguration(t *testing.T) {
	script, err := os.ReadFile(deploy + "/package/hookglass-service")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"hookglass.env": "# HOOKGLASS_NO=1\nHOOKGLASS_PLAIN=a=b$c#d\\e \n\t HOOKGLASS_SPACES = y\n  HOOKGLASS_INDENTED=  x y\t\nHOOKGLASS_QUOTED=\" kept \" \nHOOKGLASS_SINGLE='s'\nHOOKGLASS_EMPTY=\nSTRIPE_SECRET=whsec\n2ND=no\nNO-NAME=no\n; no=no\nHOOKGLASS_LAST=z",
		"id":            "#!/bin/sh\necho 0\n", "setpriv": "#!/bin/sh\nenv | grep -E '^HOOKGLASS_|^STRIPE|no$' | sort\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(string(script), "/etc/hookglass/hookglass.env", filepath.Join(dir, "hookglass.env"), 1))
	command.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	out, err := command.CombinedOutput()
	want := "HOOKGLASS_DATA=/var/lib/hookglass\nHOOKGLASS_EMPTY=\nHOOKGLASS_INDENTED=x y\nHOOKGLASS_LAST=z\nHOOKGLASS_PLAIN=a=b$c#d\\e\nHOOKGLASS_QUOTED= kept \nHOOKGLASS_SINGLE=s\nHOOKGLASS_SPACES=y\nSTRIPE_SECRET=whsec\n"
	if err != nil || string(out) != want {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
}

func TestTheSystemServiceIsConfinedAndTold(t *testing.T) {
	text, err := os.ReadFile(deploy + "/systemd/hookglass.service")
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string][]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), "="); ok && !strings.HasPrefix(name, "#") {
			settings[name] = append(settings[name], value)
		}
	}
	for name, want := range map[string]string{
		"Type": "notify", "ExecStart": "/usr/bin/hookglass serve", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes",
		"StateDirectory": "hookglass", "CapabilityBoundingSet": "CAP_NET_BIND_SERVICE", "EnvironmentFile": "-/etc/hookglass/hookglass.env",
		"Environment": "HOOKGLASS_DATA=/var/lib/hookglass", "User": "hookglass",
		"RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX AF_NETLINK", // the last for net.InterfaceAddrs
	} {
		if !slices.Contains(settings[name], want) {
			t.Errorf("%s is %q, want %q", name, settings[name], want)
		}
	}
}

// TestFiguresThatAreWatchedAreThere holds the dashboard and the alert rules to what the program gives.
func TestFiguresThatAreWatchedAreThere(t *testing.T) {
	given := server.MetricNames()
	figure := regexp.MustCompile(`\b(?:hookglass|process|go)_[a-z_]+\b`)
	base := func(name string) string {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if trimmed := strings.TrimSuffix(name, suffix); slices.Contains(given, trimmed) {
				return trimmed
			}
		}
		return name
	}
	for _, name := range []string{"grafana/hookglass.json", "prometheus/alerts.yaml", "../docs/operations.md"} {
		text, err := os.ReadFile(filepath.Join(deploy, name))
		if err != nil {
			t.Fatal(err)
		}
		found := figure.FindAllString(string(text), -1)
		if len(found) < 10 {
			t.Errorf("%s names %d figures", name, len(found))
		}
		for _, f := range found {
			if !slices.Contains(given, base(f)) {
				t.Errorf("%s: there is no figure %s", name, f)
			}
		}
	}
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range given {
		if strings.HasPrefix(g, "hookglass_") && !strings.Contains(string(text), g) {
			t.Errorf("docs/operations.md does not tell of %s", g)
		}
	}
	dashboard, err := os.ReadFile(deploy + "/grafana/hookglass.json")
	if err != nil || !json.Valid(dashboard) {
		t.Errorf("the dashboard is not JSON: %v", err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	alerts, err := os.ReadFile(deploy + "/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(alerts, &rules); err != nil {
		t.Fatal(err)
	}
	for _, r := range rules.Groups[0].Rules {
		if r.Alert == "" || r.Expr == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("the rule %q does not say all that it should", r.Alert)
		}
	}
}

// A delivery that fails takes up to six attempts, of which only the last says so: as a share of all attempts, targets of
// which none answers could stay below any limit.
func TestTheAlertOnForwardsLooksAtDeliveriesThatEnded(t *testing.T) {
	alerts, err := os.ReadFile(deploy + "/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, rule, _ := strings.Cut(string(alerts), "alert: HookglassForwardsFail")
	_, share, found := strings.Cut(rule, " / ")
	ended := `state=~"` + string(hookglass.ForwardDelivered) + "|" + string(hookglass.ForwardFailed) + `"`
	if line, _, _ := strings.Cut(share, "\n"); !found || !strings.Contains(line, ended) {
		t.Errorf("the share that fails is one of %s", line)
	}
}
