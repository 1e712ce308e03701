package tasks_test

import (
	"testing"

	"holdfast/conformance/fakemodel"
)

var goShop = map[string]string{
	"go.mod":            "module shop\n\ngo 1.21\n",
	"cart.go":           "package shop\n\n// Item is one line of a cart.\ntype Item struct {\n\tPrice, Count int\n}\n\n// Total adds up a cart.\nfunc Total(items []Item) int {\n\tsum := 0\n\tfor _, it := range items {\n\t\tsum += it.Price * it.Count\n\t}\n\treturn sum\n}\n",
	"report.go":         "package shop\n\nimport \"fmt\"\n\n// Report prints a cart.\nfunc Report(items []Item) string {\n\treturn fmt.Sprintf(\"%d items, %d\", len(items), Total(items))\n}\n",
	"cart_test.go":      "package shop\n\nimport \"testing\"\n\nfunc TestTotal(t *testing.T) {\n\tif got := Total([]Item{{2, 3}, {5, 1}}); got != 11 {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n}\n",
	"cmd/shop/main.go":  "package main\n\nimport (\n\t\"fmt\"\n\n\t\"shop\"\n)\n\nfunc main() { fmt.Println(shop.Total(nil)) }\n",
	"docs/reference.md": "`Total` adds up a cart.\n",
}

func with(files map[string]string, more map[string]string) map[string]string {
	all := map[string]string{}
	for _, set := range []map[string]string{files, more} {
		for name, text := range set {
			all[name] = text
		}
	}
	return all
}

// A name changes in every file that has it, and nothing else does.
func TestGo_RenameAcrossFiles(t *testing.T) {
	t.Parallel()
	both(t, task{needs: "go", files: goShop, check: "go vet ./... && go test ./... && grep -q 'func Sum' cart.go", gone: "Total", sees: []string{"report.go:7:", "undefined: shop.Total", "ok"},
		calls: []fakemodel.Call{grep("Total"), read("cart.go"), edit("cart.go", "Total", "Sum"), edit("report.go", "Total", "Sum"), edit("cart_test.go", "Total", "Sum"),
			shell("go vet ./..."), edit("cmd/shop/main.go", "Total", "Sum"), edit("docs/reference.md", "Total", "Sum"), shell("go test ./...")}})
}

// A failing test is looked at, its cause is found, and the same test passes.
func TestGo_FixAFailingTest(t *testing.T) {
	t.Parallel()
	broken := with(goShop, map[string]string{"cart.go": "package shop\n\n// Item is one line of a cart.\ntype Item struct {\n\tPrice, Count int\n}\n\n// Total adds up a cart.\nfunc Total(items []Item) int {\n\tsum := 0\n\tfor _, it := range items {\n\t\tsum += it.Price - it.Count\n\t}\n\treturn sum\n}\n"})
	both(t, task{needs: "go", files: broken, check: "go test ./...", sees: []string{"--- FAIL: TestTotal", "exit code 1", "it.Price - it.Count", "ok", "exit code 0"},
		calls: []fakemodel.Call{shell("go test ./..."), read("cart_test.go"), read("cart.go"), edit("cart.go", "it.Price - it.Count", "it.Price * it.Count"), shell("go test ./...")}})
}

// Code moves into a package of its own, its callers follow, and the old file goes.
func TestGo_MoveIntoAPackage(t *testing.T) {
	t.Parallel()
	both(t, task{needs: "go", files: goShop, check: "go vet ./... && go test ./... && test ! -e cart.go && grep -q 'cart.Total' report.go", sees: []string{"undefined: Item", "ok"},
		calls: []fakemodel.Call{read("cart.go"), shell("mkdir cart && git mv cart.go cart_test.go cart/"), shell("go vet ./..."), edit("cart/cart.go", "package shop", "package cart"),
			edit("cart/cart_test.go", "package shop", "package cart"), edit("report.go", "import \"fmt\"", "import (\n\t\"fmt\"\n\n\t\"shop/cart\"\n)", "[]Item", "[]cart.Item", "Total(", "cart.Total("),
			edit("cmd/shop/main.go", "\"shop\"", "\"shop/cart\"", "shop.Total", "cart.Total"), write("cart/doc.go", "// Package cart adds up.\npackage cart\n"),
			shell("gofmt -l . && go vet ./... && go test ./...")}})
}
