#!/bin/sh
# Makes the samples of this folder anew: what real tools print when they fail. A file per tool; each
# sample begins with a line "=== NAME", and what was on standard output follows "--- stdout".
# Tools that are not installed keep their file. Run it in this folder; it needs no network.
here=$PWD home=$HOME
w=$(mktemp -d) && cd "$w" || exit 1
trap 'rm -rf "$w"' EXIT
export RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}" CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" GOCACHE="$(go env GOCACHE)" GOFLAGS=-mod=mod
export LC_ALL=C HOME="$w" XDG_CACHE_HOME="$w/.c"

# sample TOOL NAME COMMAND… adds what the command prints.
sample() {
	tool=$1 name=$2; shift 2
	command -v "$1" >/dev/null || { echo "$tool: no $1"; return; }
	case " $begun " in *" $tool "*) ;; *) begun="$begun $tool"; : >"$here/$tool.txt";; esac
	timeout 60 "$@" >out 2>err </dev/null && echo "$tool $name: it succeeded"
	{ echo "=== $name"; tail -c 6000 err; [ -z "$(tail -c1 err)" ] || echo
	  [ ! -s out ] || { echo "--- stdout"; tail -c 6000 out; [ -z "$(tail -c1 out)" ] || echo; }
	} | sed -E "s#\r$##; s#$w#/srv/shop#g; s#$home/\.pyenv/[a-z]*/?[0-9.]*/?#/usr/#g; s#$home/\.(cargo|rustup)[^ ]*/#/usr/lib/#g; s#$home#/srv/home#g; s#(crates|repo\.maven\.apache)\.(io|org)#registry.invalid#g" >>"$here/$tool.txt"
}

cat >a.py <<'E'
import json, sys, socket
def load(kind):
    if kind == "key": return {}["price"]
    if kind == "json": return json.loads("{")
    if kind == "refused": return socket.create_connection(("127.0.0.1", 9))
    if kind == "chain":
        try: int("x7")
        except ValueError as e: raise RuntimeError("no rate for EUX") from e
    if kind == "lines": raise ValueError("two lines:\n  field price: is missing")
    if kind == "exit": sys.exit("no such customer")
load(sys.argv[1])
E
for k in key json refused chain exit; do sample python $k python3 a.py $k; done
sample python syntax python3 -c 'x ='
sample python option python3 --nope

cat >a.js <<'E'
const kind = process.argv[2]
if (kind === 'type') null.price
if (kind === 'throw') throw new Error('no rate for EUX')
if (kind === 'range') throw new RangeError('too many')
if (kind === 'cause') throw new Error('order failed', { cause: new TypeError('price is no number') })
if (kind === 'string') throw 'no such customer'
if (kind === 'rejected') Promise.reject(new Error('stock is empty'))
if (kind === 'refused') require('net').connect(9, '127.0.0.1')
if (kind === 'large') { const e = new Error('Request failed with status code 404'); e.response = { config: { data: Array(1500).fill('a line of the body') }, status: 404 }; require('util').inspect.defaultOptions.maxArrayLength = null; throw e }
if (kind === 'logged') { console.error(new TypeError('cart has no lines')); process.exit(1) }
E
for k in type throw range cause string rejected refused logged; do sample node $k node a.js $k; done
sample node syntax node -e 'let = = 1'
sample node module node nothere.js

cat >A.java <<'E'
public class A {
	static void pay(String kind) {
		if (kind.equals("null")) { String s = null; s.length(); }
		if (kind.equals("number")) Integer.parseInt("12x");
		try { int[] a = {}; a[1] = 2; } catch (RuntimeException e) { throw new IllegalStateException("order failed", e); }
	}
	public static void main(String[] args) { pay(args[0]); }
}
E
javac A.java
for k in null number chain; do sample java $k java -cp . A $k; done
sample java class java -cp . Nope
sample java jar java -jar nope.jar
echo 'class B { int x = "a"; }' >B.java; echo 'class C { void f() { g(); } }' >C.java
sample javac type javac B.java
sample javac symbol javac C.java

mkdir g && cat >g/main.go <<'E'
package main
import ("log"; "os"; "net")
type T struct{ n int }
func main() {
	var t *T
	switch os.Args[1] {
	case "nil": println(t.n)
	case "index": println(os.Args[:1][len(os.Args)])
	case "panic": panic("no rate for EUX")
	case "fatal": log.Fatalf("no such order: %s", "kind")
	case "dial": _, err := net.Dial("tcp", "127.0.0.1:9"); panic(err)
	}
}
E
(cd g && printf 'module g\ngo 1.24\n' >go.mod && go build -o ../gp .)
for k in nil index panic fatal dial; do sample go $k ./gp $k; done
mkdir gb && printf 'module gb\ngo 1.24\n' >gb/go.mod && printf 'package main\nfunc main() { x := 1; nope() }\n' >gb/main.go
sample go-build undefined go -C gb build .
mkdir gt && printf 'module gt\ngo 1.24\n' >gt/go.mod && printf 'package gt\nimport "testing"\nfunc TestPay(t *testing.T) { t.Errorf("got 3, want 4") }\nfunc TestOther(t *testing.T) {}\n' >gt/a_test.go
sample go-test failed go -C gt test ./...
mkdir gv && printf 'module gv\ngo 1.24\n' >gv/go.mod && printf 'package gv\nimport "fmt"\nfunc f() { fmt.Printf("%%d", "a") }\n' >gv/a.go
printf 'package gt\nimport "testing"\nfunc TestShip(t *testing.T) { var p *int; *p = 1 }\n' >gt/a_test.go
sample go-test panic go -C gt test ./...
sample go-build vet go -C gv vet ./...

cat >a.rs <<'E'
use std::env;
fn main() -> Result<(), String> {
    match env::args().nth(1).unwrap().as_str() {
        "panic" => panic!("no rate for EUX"),
        "unwrap" => { "x7".parse::<i32>().unwrap(); }
        "index" => { let v = vec![1]; println!("{}", v[env::args().count()]); }
        _ => return Err("no such order".to_string()),
    }
    Ok(())
}
E
rustc -o rp a.rs 2>/dev/null
for k in panic unwrap index err; do sample rust $k ./rp $k; done
sample rust panic env RUST_BACKTRACE=1 ./rp panic
printf 'fn main() { let x: i32 = "a"; }\n' >b.rs; printf 'fn main() { nope(); }\n' >c.rs
sample rustc type rustc b.rs
sample rustc name rustc c.rs
mkdir -p cr/src && printf '[package]\nname="cr"\nversion="0.1.0"\nedition="2021"\n' >cr/Cargo.toml && cp c.rs cr/src/main.rs
sample cargo build cargo build --offline --manifest-path cr/Cargo.toml
printf '[package]\nname="cr"\nversion="0.1.0"\nedition="2021"\n[dependencies]\nnothere="1"\n' >cr/Cargo.toml
sample cargo dependency cargo build --offline --manifest-path cr/Cargo.toml
mkdir -p ct/src && printf '[package]\nname="ct"\nversion="0.1.0"\nedition="2021"\n' >ct/Cargo.toml && printf '#[test]\nfn pays() { assert_eq!(3, 4); }\n' >ct/src/lib.rs
sample cargo test cargo test --offline --manifest-path ct/Cargo.toml

printf 'int main(){ int x = nope; return 0 }\n' >a.c; printf '#include "nothere.h"\n' >b.c; printf 'int f(void); int main(){ return f(); }\n' >c.c
sample gcc undeclared gcc -c a.c
sample gcc header gcc -c b.c
sample gcc link gcc c.c
printf 'all:\n\tgcc -c a.c\nexit:\n\t./fail.sh\n' >Makefile; printf '#!/bin/sh\necho "deploy: no such target" >&2\nexit 3\n' >fail.sh; chmod +x fail.sh
sample make compile make
sample make script make exit
sample make target make nothere
printf 'cmake_minimum_required(VERSION 3.5)\nproject(a NONE)\nfind_package(NotHere REQUIRED)\n' >CMakeLists.txt
sample cmake package cmake -B cb .
sample cmake folder cmake nothere
printf 'rule cc\n command = gcc -c $in\nbuild a.o: cc a.c\n' >build.ninja
sample ninja compile ninja
sample ninja target ninja nothere

git init -q r && (cd r && git config user.email a@b.c && git config user.name a && echo 1 >f && git add f && git commit -qm 1)
sample git repository git -C . log
sample git remote git -C r push origin main
sample git pathspec git -C r checkout nothere
sample git clone git clone -q /nothere x1
(cd r && git branch -q b && echo 2 >f && git commit -qam 2 && git checkout -q b && echo 3 >f && git commit -qam 3)
sample git conflict git -C r merge master
(cd r && git merge --abort; git config receive.denyCurrentBranch refuse; cd .. && git clone -q r r2 2>/dev/null; cd r2 && git config user.email a@b.c && git config user.name a && git commit -q --allow-empty -m x)
sample git refused git -C r2 push

mkdir n1 && printf '{"name":"n1","version":"1.0.0","scripts":{"test":"node ../a.js type","build":"node ../a.js throw"}}' >n1/package.json
sample npm script npm --prefix n1 test
sample npm build npm --prefix n1 run build
sample npm missing npm --prefix n1 run nothere
mkdir n2 && printf '{"name":' >n2/package.json
sample npm json npm --prefix n2 test
sample npm registry npm --prefix n1 install nothere-x --registry http://127.0.0.1:9 --fetch-retries 0

sample pip index pip install --no-cache-dir --disable-pip-version-check --retries 0 --no-index nothere-x
sample pip file pip install --no-index ./nothere
mkdir pb && printf 'raise RuntimeError("no compiler")\n' >pb/setup.py
sample pip build pip install --no-index --no-build-isolation ./pb

sample psql option psql --nope
sample psql refused psql -h 127.0.0.1 -p 9 -c 'select 1'
sample ssh refused ssh -o BatchMode=yes -p 9 127.0.0.1 true
sample ssh host ssh -o BatchMode=yes nothere.invalid true
sample ssh key ssh -i nokey -o BatchMode=yes -F none 127.0.0.1 true
sample scp refused scp -P 9 a.c 127.0.0.1:x
sample scp file scp nothere 127.0.0.1:x
sample curl refused curl http://127.0.0.1:9/
sample curl host curl http://nothere.invalid/
sample curl scheme curl -sS foo://x
sample wget refused wget -t 1 http://127.0.0.1:9/
sample wget host wget -t 1 http://nothere.invalid/

printf '<?php\nfunction pay($k) { if ($k == "throw") throw new RuntimeException("no rate for EUX"); if ($k == "type") strlen([]); if ($k == "chain") { try { intdiv(1, 0); } catch (Error $e) { throw new LogicException("order failed", 0, $e); } } nope(); }\npay($argv[1]);\n' >a.php
for k in throw type chain name; do sample php $k php -d display_errors=stderr a.php $k; done
sample php throw php -d display_errors=1 -d log_errors=0 a.php throw
sample php parse php -d display_errors=stderr -r 'x ='
cat >a.rb <<'E'
def pay(k)
  raise "no rate for EUX" if k == "raise"
  nil.price if k == "nil"
  begin; Integer("x7"); rescue => e; raise ArgumentError, "order failed"; end if k == "chain"
  abort "no such customer" if k == "abort"
  {}.fetch(:price)
end
pay(ARGV[0])
E
for k in raise nil chain abort key; do sample ruby $k ruby a.rb $k; done
sample perl die perl -e 'die "no rate for EUX\n"'
sample perl undefined perl -e 'use strict; $x = 1'
sample perl module perl -e 'use Not::Here'
printf 'raise "no rate for EUX"\n' >a.exs; printf 'String.to_integer("x7")\n' >b.exs
sample elixir raise elixir a.exs
sample elixir argument elixir b.exs
printf 'proc pay {} { error "no rate for EUX" }\npay\n' >a.tcl; printf 'open nothere\n' >b.tcl
sample tcl error tclsh a.tcl
sample tcl open tclsh b.tcl

sample sqlite table sqlite3 x.db 'select * from nothere'
sample sqlite syntax sqlite3 x.db 'selec 1'
echo '{"a":' >a.json
sample jq parse jq . a.json
sample jq type jq -n '"a" | .b'
sample tar file tar xf nothere.tar
sample tar member tar cf x.tar a.c nothere.c
sample tar format tar xf a.c
sample gzip format gzip -d -c a.c
sample gzip file gzip nothere
sample unzip format unzip a.c
sample unzip file unzip nothere.zip
sample openssl file openssl x509 -in nothere.pem
sample openssl format openssl x509 -in a.c
sample gpg key gpg --batch -d a.c
sample gpg recipient gpg --batch -e -r anna a.c
sample redis-cli refused redis-cli -p 9 ping
sample redis-cli host redis-cli -h nothere.invalid ping
sample shell command bash -c 'nothere-x 1'
sample shell unbound bash -uc 'echo $price'
sample shell file sh -c 'cat nothere'
sample awk syntax awk 'BEGIN { print ( }' 
sample awk file awk 1 nothere
sample sed file sed -e p nothere
sample sed command sed -e 'k' a.c
sample cp file cp nothere x
sample cp folder cp r x3
sample docker daemon env DOCKER_HOST=tcp://127.0.0.1:9 docker ps
sample docker option docker run --nope
sample kubectl refused kubectl --server http://127.0.0.1:9 get pods
sample kubectl file kubectl --server http://127.0.0.1:9 apply -f nothere.yaml
printf '<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>a</artifactId><version>1</version></project>' >pom.xml
sample mvn plugin mvn -o -B package
sample mvn pom mvn -o -B -f nothere.xml package
printf 'def test_pay():\n    assert 3 == 4\ndef test_key():\n    {}["price"]\n' >test_a.py
sample pytest failed pytest -p no:cacheprovider test_a.py
sample pytest file pytest -p no:cacheprovider nothere.py
cat >test_u.py <<'E'
import unittest
class T(unittest.TestCase):
    def test_pay(self): self.assertEqual(3, 4)
E
sample unittest failed python3 -m unittest test_u
sample unittest import python3 -m unittest nothere
printf 'const t = require("node:test"); t("pays", () => { throw new Error("got 3") })\n' >a.test.js
sample node-test failed node --test a.test.js
printf 'const t = require("node:test"), a = require("assert"); t("pays", () => { a.strictEqual(3, 4) })\n' >b.test.js
sample node-test assert node --test b.test.js
