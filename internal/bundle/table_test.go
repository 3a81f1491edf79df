package bundle_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"hookglass/internal/bundle"
	"hookglass/internal/cputime"
)

const csvHead = "Host: hooks.example.com\nContent-Type: text/csv\nContent-Length: 1\n"

// The columns of a table are fields, whose names tell what is in them.
func TestTheColumnsOfATableAreFields(t *testing.T) {
	const table = "id,first_name,\"last name\",city,total,note\r\n" +
		"1,Adelheid,\"Quartermaine, Dr.\",Heidelberg,12.50,paid\r\n" +
		"2,Bartholomew,\"O\"\"Halloran\",Zanzibar,7,for Adelheid\r\n"
	for name, body := range map[string]string{"commas": table, "semicolons": strings.ReplaceAll(strings.ReplaceAll(table, "Quartermaine, Dr.", "Quartermaine"), ",", ";"), "LF": strings.ReplaceAll(table, "\r\n", "\n")} {
		made := makeBundle(t, bundle.Options{}, webhook("unknown", "/in", csvHead, body))
		got := string(made.Events[0].Body)
		for _, left := range []string{"Adelheid", "Quartermaine", "Bartholomew", "Halloran", "Heidelberg", "Zanzibar"} {
			if strings.Contains(got, left) {
				t.Errorf("%s: %s is left in %q", name, left, got)
			}
		}
		r := csv.NewReader(strings.NewReader(got))
		if name == "semicolons" {
			r.Comma = ';'
		}
		rows, err := r.ReadAll()
		if err != nil || len(rows) != 3 || strings.Join(rows[0], "|") != "id|first_name|last name|city|total|note" || rows[1][4] != "12.50" || rows[2][0] != "2" || rows[1][5] != "paid" {
			t.Errorf("%s: the table is %q, %v", name, got, err)
		}
		if rows[2][5] != "for "+rows[1][1] {
			t.Errorf("%s: a name is not the same in the text beside it: %q", name, got)
		}
	}
	for _, text := range []string{"first_name, city\njust one line of it here", "city, first_name\na, b\nc\n", "city,\"first_name\na"} {
		if got := string(makeBundle(t, bundle.Options{}, webhook("unknown", "/in", csvHead, text)).Events[0].Body); got != text {
			t.Errorf("%q is no table, and became %q", text, got)
		}
	}
	kept := makeBundle(t, bundle.Options{Keep: []string{"name", "address"}}, webhook("unknown", "/in", csvHead, table))
	if got := string(kept.Events[0].Body); got != table {
		t.Errorf("kept kinds became %q", got)
	}
}

// A table of many cells, quotes or lines takes as long as it is.
func TestATableIsReadOnce(t *testing.T) {
	const n = 1 << 18
	for what, body := range map[string]string{
		"cells":   "first_name,city\n" + strings.Repeat("a,b\n", n/10),
		"columns": strings.Repeat("a,", n/2) + "\nb",
		"quotes":  "first_name,city\n" + strings.Repeat(`"`, n),
		"lines":   "a,b\n" + strings.Repeat("\n", n),
	} {
		cputime.AtMost(t, 2*time.Second, what, func() {
			makeBundle(t, bundle.Options{}, webhook("unknown", "/in", csvHead, body))
		})
	}
}

// An address stands for the same host as a number and with dots.
func TestAnAddressAsANumberIsReplaced(t *testing.T) {
	body := `{"client_ip":1359102606,"lastIp":"1359102606","ip":"81.2.90.142","clip":1359102606,"zip_count":7,"ip_count":1359102606,"ip_version":4}`
	made := makeBundle(t, bundle.Options{}, webhook("unknown", "/in", jsonHead, body))
	var got struct {
		Client  json.Number `json:"client_ip"`
		Last    string      `json:"lastIp"`
		Dotted  string      `json:"ip"`
		Version int         `json:"ip_version"`
		Count   json.Number `json:"zip_count"`
	}
	if err := json.Unmarshal(made.Events[0].Body, &got); err != nil {
		t.Fatal(err)
	}
	if got.Client == "1359102606" || got.Last != got.Client.String() || got.Version != 4 || got.Count != "7" {
		t.Errorf("it became %s", made.Events[0].Body)
	}
	if !strings.HasPrefix(got.Dotted, "198.1") {
		t.Errorf("the dotted one is %s", got.Dotted)
	}
}

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil || w.Close() != nil {
		t.Fatal("not written")
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// What is compressed within base64, as CloudWatch sends it, is edited inside.
func TestGzipWithinBase64IsEditedInside(t *testing.T) {
	body := `{"awslogs":{"data":"` + packed(t, `{"message":"hello","email":"adelheid@lovelace.example.org"}`) + `"}}`
	made := makeBundle(t, bundle.Options{}, webhook("unknown", "/in", jsonHead, body))
	var got struct{ Awslogs struct{ Data string } }
	if err := json.Unmarshal(made.Events[0].Body, &got); err != nil {
		t.Fatal(err)
	}
	b, err := base64.StdEncoding.DecodeString(got.Awslogs.Data)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil || strings.Contains(string(plain), "lovelace") || !strings.Contains(string(plain), `"message":"hello","email":"`) {
		t.Errorf("inside is %s, %v", plain, err)
	}

	// Of what is too large to be looked into, nothing is left; what holds nothing stays to the byte.
	bomb, harmless := packed(t, strings.Repeat("a", 2<<20)), packed(t, strings.Repeat("all is well. ", 10))
	made = makeBundle(t, bundle.Options{}, webhook("unknown", "/in", jsonHead, `{"a":"`+bomb+`","b":"`+harmless+`"}`))
	if got := string(made.Events[0].Body); strings.Contains(got, bomb) || !strings.Contains(got, harmless) {
		t.Errorf("it became %.200s", got)
	}
	// No more than 64 MiB are unpacked, in two passes.
	zeros := packed(t, strings.Repeat("\x00", 1<<20))
	for n, stays := range map[int]bool{10: true, 70: false} {
		made = makeBundle(t, bundle.Options{}, webhook("unknown", "/in", jsonHead, `["`+strings.Repeat(zeros+`","`, n)+`"]`))
		if strings.Contains(string(made.Events[0].Body), zeros) != stays {
			t.Errorf("that one of %d MiB stays is not %v", n, stays)
		}
	}
}
