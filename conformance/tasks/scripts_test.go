package tasks_test

import (
	"testing"

	"holdfast/conformance/fakemodel"
)

var nodeShop = map[string]string{
	"package.json":       "{\"name\":\"shop\",\"version\":\"1.0.0\",\"type\":\"module\",\"scripts\":{\"test\":\"node --test\"}}\n",
	"src/cart.js":        "export function total(items) {\n  return items.reduce((sum, it) => sum + it.price * it.count, 0);\n}\n",
	"src/report.js":      "import { total } from './cart.js';\n\nexport const report = (items) => `${items.length} items, ${total(items)}`;\n",
	"test/cart.test.js":  "import test from 'node:test';\nimport assert from 'node:assert';\nimport { total } from '../src/cart.js';\nimport { report } from '../src/report.js';\n\ntest('adds up', () => {\n  assert.equal(total([{ price: 2, count: 3 }, { price: 5, count: 1 }]), 11);\n  assert.equal(report([]), '0 items, 0');\n});\n",
	"docs/reference.txt": "total(items)\n",
}

var pythonShop = map[string]string{
	"shop/__init__.py":  "",
	"shop/cart.py":      "def total(items):\n    return sum(price * count for price, count in items)\n",
	"shop/report.py":    "from shop.cart import total\n\n\ndef report(items):\n    return f\"{len(items)} items, {total(items)}\"\n",
	"tests/__init__.py": "",
	"tests/test_cart.py": "import unittest\n\nfrom shop.cart import total\nfrom shop.report import report\n\n\nclass Cart(unittest.TestCase):\n" +
		"    def test_total(self):\n        self.assertEqual(total([(2, 3), (5, 1)]), 11)\n        self.assertEqual(report([]), \"0 items, 0\")\n",
}

func TestNode_RenameAcrossFiles(t *testing.T) {
	t.Parallel()
	both(t, task{needs: "node", files: nodeShop, check: "node --test && grep -q 'function addUp' src/cart.js", gone: "total", sees: []string{"report.js:1:", "pass 1"},
		calls: []fakemodel.Call{grep("total"), edit("src/cart.js", "total", "addUp"), edit("src/report.js", "total", "addUp"), edit("test/cart.test.js", "total", "addUp"),
			edit("docs/reference.txt", "total", "addUp"), shell("node --test")}})
}

func TestNode_FixAFailingTest(t *testing.T) {
	t.Parallel()
	broken := with(nodeShop, map[string]string{"src/cart.js": "export function total(items) {\n  return items.reduce((sum, it) => sum + it.price, 0);\n}\n"})
	both(t, task{needs: "node", files: broken, check: "node --test", sees: []string{"fail 1", "sum + it.price", "pass 1", "fail 0"},
		calls: []fakemodel.Call{shell("node --test"), read("src/cart.js"), edit("src/cart.js", "sum + it.price", "sum + it.price * it.count"), shell("node --test")}})
}

func TestPython_RenameAcrossFiles(t *testing.T) {
	t.Parallel()
	both(t, task{needs: "python3", files: pythonShop, check: "python3 -m unittest -q && grep -q 'def add_up' shop/cart.py", gone: "import total", sees: []string{"report.py:1:", "OK"},
		calls: []fakemodel.Call{grep("total"), edit("shop/cart.py", "total", "add_up"), edit("shop/report.py", "total", "add_up"),
			edit("tests/test_cart.py", "import total", "import add_up", "total([", "add_up(["), shell("python3 -m unittest")}})
}

func TestPython_FixAFailingTest(t *testing.T) {
	t.Parallel()
	broken := with(pythonShop, map[string]string{"shop/cart.py": "def total(items):\n    return sum(price - count for price, count in items)\n"})
	both(t, task{needs: "python3", files: broken, check: "python3 -m unittest -q", sees: []string{"AssertionError", "price - count", "OK"},
		calls: []fakemodel.Call{shell("python3 -m unittest"), read("shop/cart.py"), edit("shop/cart.py", "price - count for", "price * count for"), shell("python3 -m unittest")}})
}
