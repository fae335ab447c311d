/*
Copyright The Cozystack Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

const factorySchematic = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"

// parse reads a document that is a catalog.
func parse(t *testing.T, document string) *Catalog {
	t.Helper()
	catalog, err := Parse([]byte(document))
	if err != nil {
		t.Fatalf("Parse: %v\n%s", err, document)
	}
	return catalog
}

// names returns the names of the goldens that a catalog declares.
func names(catalog *Catalog) []string {
	var names []string
	for _, entry := range catalog.Entries {
		names = append(names, entry.Name())
	}
	return names
}

// beside returns a document with one valid image and, at images[1], the given keys.
func beside(keys ...string) string {
	return "images:\n- schematicID: good\n  version: v1.13.6\n- " + strings.Join(keys, "\n  ") + "\n"
}

// with returns a document as beside does, whose second image has a valid pair of its own.
func with(keys ...string) string {
	return beside(append([]string{"schematicID: aaa", "version: v1.13.6"}, keys...)...)
}

func TestEntryTakesWhatItLeavesOutFromTheCatalog(t *testing.T) {
	const checksum = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	aaa := golden.ID{SchematicID: "aaa", Version: "v1.13.6"}
	builtin := Entry{ID: aaa, ImageFactoryURL: "https://factory.talos.dev", Storage: "6Gi"}
	catalogs := Entry{ID: aaa, ImageFactoryURL: "http://mirror:8080/talos", Storage: "8Gi", StorageClass: "replicated",
		Checksum: checksum, CertConfigMap: "mirror-ca"}
	own := Entry{ID: aaa, ImageFactoryURL: "https://other", Storage: "6144Mi", StorageClass: "local",
		Checksum: "md5:5d41402abc4b2a76b9719d911017c592", CertConfigMap: "other-ca"}

	const defaults = "imageFactoryURL: http://mirror:8080/talos/\nstorageClass: replicated\nstorage: 8Gi\nchecksum: " + checksum +
		"\ncertConfigMap: mirror-ca\n"
	const overrides = ", imageFactoryURL: https://other, storage: 6144Mi, storageClass: local, " +
		"checksum: 'md5:5d41402abc4b2a76b9719d911017c592', certConfigMap: other-ca"
	for name, test := range map[string]struct {
		defaults string
		keys     string
		want     Entry
	}{
		"nothing is set anywhere":                          {"", "", builtin},
		"the catalog sets everything":                      {defaults, "", catalogs},
		"the entry sets everything":                        {"", overrides, own},
		"the entry overrides everything":                   {defaults, overrides, own},
		"an empty string in the entry overrides nothing":   {defaults, ", imageFactoryURL: '', storage: '', storageClass: '', checksum: '', certConfigMap: ''", catalogs},
		"null in the entry overrides nothing":              {defaults, ", imageFactoryURL: null, storage: ~, storageClass: , checksum: , certConfigMap: ", catalogs},
		"an empty string in the catalog sets nothing":      {"imageFactoryURL: ''\nstorageClass: ''\nstorage: ''\nchecksum: ''\ncertConfigMap: ''\n", "", builtin},
		"null in the catalog sets nothing":                 {"imageFactoryURL:\nstorageClass:\nstorage:\nchecksum:\ncertConfigMap:\n", "", builtin},
		"the other defaults hold where the entry sets one": {"storageClass: replicated\n", ", storage: 8Gi", Entry{ID: aaa, ImageFactoryURL: "https://factory.talos.dev", Storage: "8Gi", StorageClass: "replicated"}},
	} {
		t.Run(name, func(t *testing.T) {
			catalog := parse(t, test.defaults+"images: [{schematicID: aaa, version: v1.13.6"+test.keys+"}]\n")
			if diff := cmp.Diff([]Entry{test.want}, catalog.Entries); diff != "" {
				t.Errorf("entries (-want +got):\n%s%v", diff, catalog.Rejected)
			}
		})
	}
}

func TestDefaultsMayFollowTheImages(t *testing.T) {
	catalog := parse(t, "images: [{schematicID: aaa, version: v1.13.6}]\nstorage: 8Gi\n")
	if got := catalog.Entries[0].Storage; got != "8Gi" {
		t.Errorf("storage %s, want 8Gi", got)
	}
}

func TestAcceptedValues(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		want     []string
	}{
		"an id of the Image Factory":           {beside("schematicID: "+factorySchematic, "version: v1.13.6"), []string{"talos-worker-" + factorySchematic + "-v1.13.6", "talos-worker-good-v1.13.6"}},
		"a readable id with dashes":            {beside("schematicID: talos-gpu-nvidia-open", "version: v1.13.6"), []string{"talos-worker-good-v1.13.6", "talos-worker-talos-gpu-nvidia-open-v1.13.6"}},
		"an id that is a number in quotes":     {beside(`schematicID: "123"`, "version: v1.13.6"), []string{"talos-worker-123-v1.13.6", "talos-worker-good-v1.13.6"}},
		"a pre-release":                        {beside("schematicID: abc", "version: v1.14.0-alpha.1"), []string{"talos-worker-abc-v1.14.0-alpha.1", "talos-worker-good-v1.13.6"}},
		"the longest name":                     {beside("schematicID: "+strings.Repeat("f", 232), "version: v1.13.6"), []string{"talos-worker-" + strings.Repeat("f", 232) + "-v1.13.6", "talos-worker-good-v1.13.6"}},
		"two versions of one schematic":        {beside("schematicID: good", "version: v1.13.7"), []string{"talos-worker-good-v1.13.6", "talos-worker-good-v1.13.7"}},
		"a size in plain bytes":                {with("storage: 6442450944"), []string{"talos-worker-aaa-v1.13.6", "talos-worker-good-v1.13.6"}},
		"a size with an exponent":              {with("storage: '6e9'"), []string{"talos-worker-aaa-v1.13.6", "talos-worker-good-v1.13.6"}},
		"a checksum of any algorithm of CDI":   {with("checksum: sha512:" + strings.Repeat("0a", 64)), []string{"talos-worker-aaa-v1.13.6", "talos-worker-good-v1.13.6"}},
		"a checksum in capitals and blanks":    {with("checksum: ' SHA1 : " + strings.Repeat("0A", 20) + " '"), []string{"talos-worker-aaa-v1.13.6", "talos-worker-good-v1.13.6"}},
		"a URL with credentials and a port":    {with("imageFactoryURL: https://user:password@mirror.example:8443/talos"), []string{"talos-worker-aaa-v1.13.6", "talos-worker-good-v1.13.6"}},
		"a URL with an address":                {with("imageFactoryURL: 'http://[2001:db8::1]:8080'"), []string{"talos-worker-aaa-v1.13.6", "talos-worker-good-v1.13.6"}},
		"a value that is an alias":             {"storage: &size 6Gi\nimages: [{schematicID: aaa, version: v1.13.6, storage: *size}]", []string{"talos-worker-aaa-v1.13.6"}},
		"a document that begins with a marker": {"---\nimages: [{schematicID: aaa, version: v1.13.6}]", []string{"talos-worker-aaa-v1.13.6"}},
		"a document in JSON":                   {`{"images": [{"schematicID": "aaa", "version": "v1.13.6"}]}`, []string{"talos-worker-aaa-v1.13.6"}},
		"no document":                          {"", nil},
		"only a comment":                       {"# nothing yet\n", nil},
		"null":                                 {"null\n", nil},
		"an empty mapping":                     {"{}\n", nil},
		"no images":                            {"storage: 6Gi\n", nil},
		"images that are null":                 {"images:\n# - schematicID: aaa\n", nil},
		"an empty list of images":              {"images: []\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			catalog := parse(t, test.document)
			if diff := cmp.Diff(test.want, names(catalog)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if len(catalog.Rejected) > 0 || len(catalog.Warnings) > 0 {
				t.Errorf("rejected %v, warnings %q", catalog.Rejected, catalog.Warnings)
			}
		})
	}
}

func TestBadEntryIsRejectedByItself(t *testing.T) {
	aaa := golden.ID{SchematicID: "aaa", Version: "v1.13.6"}
	onlySchematic, onlyVersion := golden.ID{SchematicID: "aaa"}, golden.ID{Version: "v1.13.6"}
	const url = "images[1].imageFactoryURL"
	for name, test := range map[string]struct {
		document string
		id       golden.ID
		path     string
		says     string
	}{
		"no schematic id":                           {beside("version: v1.13.6"), onlyVersion, "images[1].schematicID", "is required"},
		"an empty schematic id":                     {beside("schematicID: ''", "version: v1.13.6"), onlyVersion, "images[1].schematicID", "is required"},
		"a schematic id in capitals":                {beside("schematicID: ABC", "version: v1.13.6"), onlyVersion, "images[1].schematicID", `"ABC" is not accepted: a schematic id must consist of`},
		"a schematic id with a dot":                 {beside("schematicID: a.b", "version: v1.13.6"), onlyVersion, "images[1].schematicID", `"a.b" is not accepted`},
		"a schematic id that is a number":           {beside("schematicID: 123", "version: v1.13.6"), onlyVersion, "images[1].schematicID", "is a number, a string is accepted: put it in quotes"},
		"a schematic id that reads as a float":      {beside("schematicID: 12e45", "version: v1.13.6"), onlyVersion, "images[1].schematicID", "is a number, a string is accepted: put it in quotes"},
		"no version":                                {beside("schematicID: aaa"), onlySchematic, "images[1].version", "is required"},
		"a version that names no release":           {beside("schematicID: aaa", "version: v1.13"), onlySchematic, "images[1].version", `"v1.13" is not accepted: a version must be a full Talos release`},
		"a version without its v":                   {beside("schematicID: aaa", "version: 1.13.6"), onlySchematic, "images[1].version", `"1.13.6" is not accepted`},
		"a version that is a number":                {beside("schematicID: aaa", "version: 1.13"), onlySchematic, "images[1].version", "is a number, a string is accepted: put it in quotes"},
		"a version that is a boolean":               {beside("schematicID: aaa", "version: true"), onlySchematic, "images[1].version", "is a boolean, a string is accepted"},
		"a version that is a date":                  {beside("schematicID: aaa", "version: 2026-01-01"), onlySchematic, "images[1].version", "is a date, a string is accepted"},
		"a version that is a list":                  {beside("schematicID: aaa", "version: [v1.13.6]"), onlySchematic, "images[1].version", "is a list, a string is accepted"},
		"a version that is a mapping":               {beside("schematicID: aaa", "version: {v1: v2}"), onlySchematic, "images[1].version", "is a mapping, a string is accepted"},
		"a version of a type of its own":            {beside("schematicID: aaa", "version: !talos v1.13.6"), onlySchematic, "images[1].version", "is a value of a type of its own"},
		"a version that is too long":                {beside("schematicID: aaa", "version: v1.13."+strings.Repeat("6", 2000)), onlySchematic, "images[1].version", "has 2006 bytes, at most 1024 are accepted"},
		"a name that is too long":                   {beside("schematicID: "+strings.Repeat("f", 233), "version: v1.13.6"), golden.ID{}, "images[1]", "the name of the golden would have 254 characters, at most 253 are accepted"},
		"a URL of another scheme":                   {with("imageFactoryURL: ftp://factory.talos.dev"), aaa, url, "does not begin with http:// or https://: an http or https URL without blanks"},
		"a URL without a scheme":                    {with("imageFactoryURL: factory.talos.dev"), aaa, url, "does not begin with http:// or https://"},
		"a URL without a host":                      {with("imageFactoryURL: https:///image"), aaa, url, "names no host"},
		"a URL that ends at its scheme":             {with("imageFactoryURL: https://"), aaa, url, "names no host"},
		"a URL with a blank":                        {with("imageFactoryURL: https://factory talos.dev"), aaa, url, "holds a blank, a quote, a backtick or a $"},
		"a URL with a line break":                   {with(`imageFactoryURL: "https://factory\n"`), aaa, url, "holds a blank"},
		"a URL with a double quote":                 {with(`imageFactoryURL: 'https://factory"'`), aaa, url, "holds a blank, a quote"},
		"a URL with a single quote":                 {with(`imageFactoryURL: "https://factory'"`), aaa, url, "holds a blank, a quote"},
		"a URL with a backtick":                     {with("imageFactoryURL: https://factory`id`"), aaa, url, "holds a blank, a quote, a backtick"},
		"a URL with a dollar":                       {with("imageFactoryURL: https://factory/$HOME"), aaa, url, "or a $"},
		"a URL with a fragment":                     {with("imageFactoryURL: https://factory/#top"), aaa, url, "holds a fragment"},
		"a URL with a bad port":                     {with("imageFactoryURL: https://factory:port"), aaa, url, "is not a URL"},
		"a size that is no quantity":                {with("storage: 6 Gigabytes"), aaa, "images[1].storage", `"6 Gigabytes" is not accepted: a size is a positive quantity, such as 6Gi`},
		"a size of zero":                            {with("storage: 0Gi"), aaa, "images[1].storage", `"0Gi" is not accepted`},
		"a negative size":                           {with("storage: -6Gi"), aaa, "images[1].storage", `"-6Gi" is not accepted`},
		"a size that takes minutes to compute":      {with("storage: '1e999999999'"), aaa, "images[1].storage", `"1e999999999" is not accepted`},
		"a size that is a fraction without quotes":  {with("storage: 6.5"), aaa, "images[1].storage", "is a number, a string is accepted: put it in quotes"},
		"a class that is no name":                   {with("storageClass: Replicated_2"), aaa, "images[1].storageClass", `"Replicated_2" is not accepted: a lowercase RFC 1123 subdomain`},
		"a ConfigMap that is no name":               {with("certConfigMap: -ca"), aaa, "images[1].certConfigMap", `"-ca" is not accepted: a lowercase RFC 1123 subdomain`},
		"a checksum without an algorithm":           {with("checksum: " + strings.Repeat("0a", 32)), aaa, "images[1].checksum", "a checksum is md5:, sha1:, sha256: or sha512:"},
		"a checksum of another algorithm":           {with("checksum: sha384:" + strings.Repeat("0a", 48)), aaa, "images[1].checksum", "a checksum is md5:, sha1:, sha256: or sha512:"},
		"a checksum of the wrong length":            {with("checksum: sha256:0a"), aaa, "images[1].checksum", `"sha256:0a" is not accepted`},
		"a checksum of other digits":                {with("checksum: md5:" + strings.Repeat("xy", 16)), aaa, "images[1].checksum", "the hash in hexadecimal"},
		"a checksum with more behind it":            {with("checksum: sha256:abc:123"), aaa, "images[1].checksum", `"sha256:abc:123" is not accepted`},
		"a key that is misspelt":                    {with("storageclass: local"), aaa, "images[1]", `unknown key "storageclass", accepted are schematicID, version, imageFactoryURL, storage, storageClass, checksum, certConfigMap`},
		"a key that is a list":                      {with("? [a]", ": b"), aaa, "images[1]", `unknown key "", accepted are`},
		"a merge key":                               {with("<<: {storage: 8Gi}"), aaa, "images[1]", `unknown key "<<", accepted are`},
		"a key given twice":                         {with("storage: 6Gi", "storage: 8Gi"), aaa, "images[1].storage", "is given more than once, exactly one value is accepted"},
		"half a pair given twice":                   {with("version: v1.13.7"), onlySchematic, "images[1].version", "is given more than once"},
		"several mistakes at once":                  {with("storage: none", "storageClass: _"), aaa, "images[1]", `storage "none" is not accepted: a size is a positive quantity, such as 6Gi; storageClass "_" is not accepted`},
		"an item that is null":                      {beside(""), golden.ID{}, "images[1]", "is null, a mapping with schematicID and version is accepted"},
		"an item that is a string":                  {beside("talos-worker-aaa-v1.13.6"), golden.ID{}, "images[1]", "is a string, a mapping with schematicID and version is accepted"},
		"an item that is an alias":                  {"images: [&a {schematicID: good, version: v1.13.6}, *a]", golden.ID{}, "images[1]", "is an alias, a mapping"},
		"a value that is an alias of something bad": {"x: &x {}\nimages: [{schematicID: good, version: v1.13.6}, {schematicID: aaa, version: *x}]", onlySchematic, "images[1].version", "is a mapping"},
	} {
		t.Run(name, func(t *testing.T) {
			catalog := parse(t, test.document)
			if diff := cmp.Diff([]string{"talos-worker-good-v1.13.6"}, names(catalog)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if len(catalog.Rejected) != 1 {
				t.Fatalf("rejected %v, want one", catalog.Rejected)
			}
			got := catalog.Rejected[0]
			if got.ID != test.id || got.Path != test.path {
				t.Errorf("rejected %+v at %s, want %+v at %s", got.ID, got.Path, test.id, test.path)
			}
			if !strings.Contains(got.Message, test.says) {
				t.Errorf("message %q\ndoes not say %q", got.Message, test.says)
			}
		})
	}
}

func TestRejectionNamesTheEntry(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		want     string
	}{
		"by its pair":               {with("storage: none"), `images[1].storage (schematicID "aaa", version "v1.13.6"): "none" is not accepted: a size is a positive quantity, such as 6Gi`},
		"by the part that is known": {beside("schematicID: aaa"), `images[1].version (schematicID "aaa", version ""): is required`},
		"by its place":              {beside("[]"), "images[1]: is a list, a mapping with schematicID and version is accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parse(t, test.document).Rejected[0].String(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestPairDeclaredMoreThanOnceIsNotInForce(t *testing.T) {
	const message = `the pair of schematicID "aaa" and version "v1.13.6" is declared by images[0], images[2], and none of them is used: leave one`
	const pair = "schematicID: aaa, version: v1.13.6"
	for name, test := range map[string]struct {
		first, last string
		want        []string // messages
	}{
		"both are the same":             {pair, pair, []string{message, message}},
		"they differ":                   {pair, pair + ", storage: 8Gi", []string{message, message}},
		"one is wrong in another field": {pair, pair + ", storage: none", []string{message, `storage "none" is not accepted: a size is a positive quantity, such as 6Gi; ` + message}},
	} {
		t.Run(name, func(t *testing.T) {
			catalog := parse(t, fmt.Sprintf("images: [{%s}, {schematicID: bbb, version: v1.13.6}, {%s}]", test.first, test.last))
			if diff := cmp.Diff([]string{"talos-worker-bbb-v1.13.6"}, names(catalog)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			id := golden.ID{SchematicID: "aaa", Version: "v1.13.6"}
			want := []Rejection{{id, "images[0]", test.want[0]}, {id, "images[2]", test.want[1]}}
			if diff := cmp.Diff(want, catalog.Rejected); diff != "" {
				t.Errorf("rejected (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadDefaultRejectsTheEntriesThatRelyOnIt(t *testing.T) {
	for name, test := range map[string]struct {
		bad, good string
		key       string
		says      string
	}{
		"imageFactoryURL":       {"imageFactoryURL: ftp://mirror", "https://mirror", "imageFactoryURL", "imageFactoryURL does not begin with http:// or https://"},
		"storage":               {"storage: lots", "6Gi", "storage", `storage "lots" is not accepted: a size is a positive quantity`},
		"storageClass":          {"storageClass: A", "local", "storageClass", `storageClass "A" is not accepted`},
		"checksum":              {"checksum: sha256", "md5:5d41402abc4b2a76b9719d911017c592", "checksum", `checksum "sha256" is not accepted`},
		"certConfigMap":         {"certConfigMap: [ca]", "ca", "certConfigMap", "certConfigMap is a list, a string is accepted"},
		"a default given twice": {"storage: 6Gi\nstorage: 8Gi", "7Gi", "storage", "storage is given more than once"},
	} {
		t.Run(name, func(t *testing.T) {
			catalog := parse(t, fmt.Sprintf("%s\nimages: [{schematicID: own, version: v1.13.6, %s: '%s'}, {schematicID: relies, version: v1.13.6}]",
				test.bad, test.key, test.good))
			if diff := cmp.Diff([]string{"talos-worker-own-v1.13.6"}, names(catalog)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if len(catalog.Rejected) != 1 || len(catalog.Warnings) != 1 {
				t.Fatalf("rejected %v, warnings %q; want one of each", catalog.Rejected, catalog.Warnings)
			}
			got := catalog.Rejected[0]
			if got.ID.SchematicID != "relies" || got.Path != "images[1]."+test.key ||
				!strings.Contains(got.Message, "is not set, and the default of the catalog is wrong: "+test.says) {
				t.Errorf("rejected %v", got)
			}
			if !strings.Contains(catalog.Warnings[0], test.says) || !strings.Contains(catalog.Warnings[0], "every image that does not set it is rejected") {
				t.Errorf("warning %q does not say %q", catalog.Warnings[0], test.says)
			}
		})
	}
}

func TestUnknownKeyOfTheCatalogIsAWarning(t *testing.T) {
	catalog := parse(t, "storagClass: local\nimags: []\nimages: [{schematicID: aaa, version: v1.13.6}]")
	if len(catalog.Entries) != 1 || len(catalog.Rejected) != 0 {
		t.Errorf("entries %v, rejected %v", catalog.Entries, catalog.Rejected)
	}
	want := []string{`unknown key "storagClass", "imags", accepted are imageFactoryURL, storage, storageClass, checksum, certConfigMap, images`}
	if diff := cmp.Diff(want, catalog.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestWhatIsNotACatalog(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		says     string
	}{
		"not YAML":                         {"images: [", "not a catalog: yaml: line 1:"},
		"not text":                         {"\xff\xfe\xfd", "not a catalog: yaml:"},
		"a tab as indentation":             {"images:\n\t- a", "not a catalog: yaml: line 2:"},
		"an alias of nothing":              {"images: *" + strings.Repeat("a", 1000), "not a catalog: yaml: unknown anchor"},
		"a string":                         {"hello", "the document is a string, a mapping with the key images is accepted"},
		"a list":                           {"- schematicID: aaa", "the document is a list, a mapping with the key images is accepted"},
		"images that are a mapping":        {"images: {}", "images is a mapping, a list is accepted"},
		"images that are a string":         {"images: none", "images is a string, a list is accepted"},
		"images given twice":               {"images: []\nimages: []", "images is given more than once"},
		"two documents":                    {"images: []\n---\nimages: []", "more than one YAML document"},
		"a document behind an empty one":   {"---\n---\nimages: []", "more than one YAML document"},
		"a broken document behind it":      {"images: []\n---\n[", "not a catalog: yaml:"},
		"more bytes than a ConfigMap has":  {"#" + strings.Repeat("a", 1<<20), "the document has 1048577 bytes, at most 1048576 are accepted"},
		"more images than a cluster holds": {"images:\n" + strings.Repeat("- {}\n", 10001), "images has 10001 items, at most 10000 are accepted"},
		"lists that are nested too deep":   {"images: " + strings.Repeat("[", 100000), "not a catalog: yaml: exceeded max depth"},
	} {
		t.Run(name, func(t *testing.T) {
			catalog, err := Parse([]byte(test.document))
			if err == nil {
				t.Fatalf("accepted as %+v", catalog)
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %q does not say %q", err, test.says)
			}
			if len(err.Error()) > 300 {
				t.Errorf("error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestAliasesDoNotMultiplyTheWork(t *testing.T) {
	for name, document := range map[string]string{
		"lists of lists": "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n" +
			"g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: &h [*g,*g,*g,*g,*g,*g,*g,*g,*g]\ni: &i [*h,*h,*h,*h,*h,*h,*h,*h,*h]\nimages: *i\n",
		"an anchor within itself":     "images: &a [*a, {schematicID: *a, version: *a}]\n",
		"a large mapping as an item":  "x: &x {" + strings.Repeat("k: v, ", 50000) + "}\nimages:\n" + strings.Repeat("- *x\n", 10000),
		"a large string as a version": "x: &x " + strings.Repeat("v", 500000) + "\nimages:\n" + strings.Repeat("- {schematicID: a, version: *x}\n", 10000),
	} {
		t.Run(name, func(t *testing.T) {
			catalog := parse(t, document)
			if len(catalog.Entries) != 0 || len(catalog.Rejected) == 0 {
				t.Fatalf("entries %v", catalog.Entries)
			}
			for _, rejection := range catalog.Rejected {
				if len(rejection.String()) > 400 {
					t.Fatalf("a rejection of %d bytes: %.400s", len(rejection.String()), rejection)
				}
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	var document strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&document, "unknown%d: x\n", i)
	}
	document.WriteString("images:\n")
	document.WriteString(strings.Repeat("- {schematicID: aaa, version: v1.13.6}\n", 1000))
	fmt.Fprintf(&document, "- {schematicID: %s, version: v1.13.6", strings.Repeat("A", 1000))
	for i := range 1000 {
		fmt.Fprintf(&document, ", unknown%d: x", i)
	}
	document.WriteString("}\n")

	catalog := parse(t, document.String())
	if len(catalog.Rejected) != 1001 {
		t.Fatalf("rejected %d", len(catalog.Rejected))
	}
	texts := catalog.Warnings
	for _, rejection := range catalog.Rejected {
		texts = append(texts, rejection.String())
	}
	for _, text := range texts {
		if len(text) > 1024 {
			t.Fatalf("a text of %d bytes: %s", len(text), text)
		}
	}
	if want := "images[7] and 992 more"; !strings.Contains(texts[1], want) {
		t.Errorf("%s\ndoes not say %q", texts[1], want)
	}
}

func TestMessagesShowNoCredentials(t *testing.T) {
	for name, url := range map[string]string{
		"another scheme":    "ftp://user:secret@mirror",
		"no scheme":         "user:secret@mirror",
		"a blank":           "https://user:secret mirror",
		"a bad port":        "https://user:secret/x@mirror",
		"a token":           "https://mirror:port?token=secret",
		"a type of its own": "!!int https://user:secret@mirror",
		"a list":            "[https://user:secret@mirror]",
	} {
		t.Run(name, func(t *testing.T) {
			for _, document := range []string{
				"images: [{schematicID: aaa, version: v1.13.6}]\nimageFactoryURL: " + url,
				with("imageFactoryURL: " + url),
			} {
				catalog := parse(t, document)
				if len(catalog.Rejected) != 1 {
					t.Errorf("accepted: %s", document)
				}
				if text := fmt.Sprint(catalog.Rejected, catalog.Warnings); strings.Contains(text, "secret") {
					t.Error(text)
				}
			}
		})
	}
}

func TestEntriesAreSortedByTheNameOfTheGolden(t *testing.T) {
	catalog := parse(t, "images: [{schematicID: b, version: v1.0.0}, {schematicID: a, version: v1.9.0}, {schematicID: a-b, version: v1.0.0}, {schematicID: a, version: v1.10.0}]")
	if got := names(catalog); !slices.IsSorted(got) || len(got) != 4 {
		t.Errorf("names %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, document := range []string{
		"", "null", "images:", "[", "\xff\xfe", "--- !!map {images: !!seq []}",
		"imageFactoryURL: https://factory.talos.dev\nstorageClass: replicated\nstorage: 6Gi\nimages:\n- schematicID: " + factorySchematic + "\n  version: v1.13.6\n",
		with("storage: 1e3", "checksum: md5:5d41402abc4b2a76b9719d911017c592", "certConfigMap: ca"),
		"images: [{schematicID: abc-v1, version: v1.13.6}, {schematicID: abc, version: v1.0.0-v2.0.0}, {schematicID: abc, version: v1.14.0-alpha.1}]",
		"images: [{schematicID: a, version: v1.0.0}, {schematicID: a, version: v1.0.0}]",
		"images: &a [*a, {? *a : *a, <<: *a}]",
	} {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		catalog, err := Parse(content)
		again, errAgain := Parse(content)
		if fmt.Sprint(err) != fmt.Sprint(errAgain) {
			t.Fatalf("errors differ: %v, %v", err, errAgain)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(catalog, again); diff != "" {
			t.Fatalf("not deterministic:\n%s", diff)
		}
		if !slices.IsSorted(names(catalog)) || len(slices.Compact(names(catalog))) != len(catalog.Entries) {
			t.Fatalf("names not sorted or not unique: %q", names(catalog))
		}
		for _, entry := range catalog.Entries {
			dataVolume := entry.DataVolume("cozy-public")
			if id, ok := golden.ParseName(dataVolume.Name); !ok || id != entry.ID {
				t.Fatalf("%q names %+v, not %+v", dataVolume.Name, id, entry.ID)
			}
			if found, ok := catalog.Lookup(entry.ID); !ok || found != entry {
				t.Fatalf("Lookup(%+v) = %+v, %v", entry.ID, found, ok)
			}
		}
		for _, rejection := range catalog.Rejected {
			if _, found := catalog.Lookup(rejection.ID); found {
				t.Fatalf("both in force and rejected: %s", rejection)
			}
		}
	})
}
