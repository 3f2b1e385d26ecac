#!/bin/sh
# Makes the stacks of this folder with the real languages, in a folder of its own: python3, node, java,
# ruby, php, elixir, rustc, mcs with mono, go, perl. Files whose names end in by-hand were written.
#
#	sh make.sh 0 && sh make.sh 9 # the second time the lines of all programs have moved
set -u
pad=$1
mk() { { [ -n "$2" ] && echo "$2"; i=0; while [ $i -lt $pad ]; do echo; i=$((i+1)); done; cat; } > $1; }
mk shop.py "" <<'E'
import traceback, json
def total(o):
    return o["total"]
def count(o):
    return o["count"]
def weight(o):
    return int(o)
def ship(o):
    try:
        weight(o)
    except ValueError as e:
        raise RuntimeError("not shipped") from e
def refund(o):
    try:
        weight(o)
    except ValueError:
        return total({})
def load(s):
    return json.loads(s)
class Cart:
    def pay(self, o):
        return o.card
    def each(self, o):
        return [x.card for x in o]
for name, f in [("total", lambda: total({})), ("count", lambda: count({})), ("weight", lambda: weight("x")), ("ship", lambda: ship("x")), ("refund", lambda: refund("x")), ("load", lambda: load("{")), ("pay", lambda: Cart().pay(1)), ("each", lambda: Cart().each([1]))]:
    try: f()
    except Exception: print("=== " + ("weight" if name == "ship" else name)); print(traceback.format_exc().rstrip())
E
mk shop.js "" <<'E'
function total(o) { return o.total.value }
function count(o) { return o.total.value }
class Cart {
  pay(o) { return total(o) }
  ship(o) {
    try { return this.weigh(o) } catch (e) { throw new Error('not shipped', { cause: e }) }
  }
  weigh(o) { return o.weight.grams }
  each(o) { return [1].map(x => o.nope(x)) }
  load(s) { return JSON.parse(s) }
  async later(o) { await null; return o.late.value }
}
const c = new Cart()
const util = require('util')
for (const [n, f] of [['total', () => total({})], ['count', () => count({})], ['total', () => c.pay({})], ['weigh', () => c.weigh({})], ['weigh', () => c.ship({})], ['each', () => c.each({})], ['load', () => c.load('{')]]) {
  try { f() } catch (e) { console.log('=== ' + n); console.log(util.inspect(e)) }
}
c.later({}).catch(e => { console.log('=== later'); console.log(e.stack) })
E
mk Shop.java "" <<'E'
import java.util.*;
public class Shop {
  static class Cart {
    String pay(String s) { return s.trim(); }
    String refund(String s) { return s.trim(); }
    String ship(String s) { try { return pay(s); } catch (RuntimeException e) { throw new IllegalStateException("not shipped", e); } }
    int weight(String s) { return Integer.parseInt(s); }
    void each() { List.of(1, 2).forEach(x -> { throw new UnsupportedOperationException(); }); }
    Object anonymous() { return new Comparator<String>() { public int compare(String a, String b) { return a.length(); } }.compare(null, null); }
    Object first(List<String> l) { return l.iterator().next(); }
  }
  public static void main(String[] a) {
    Cart c = new Cart();
    Map<String, Runnable> m = new LinkedHashMap<>();
    m.put("pay", () -> c.pay(null)); m.put("refund", () -> c.refund(null)); m.put("pay ", () -> c.ship(null)); m.put("weight", () -> c.weight("x"));
    m.put("each", () -> c.each()); m.put("anonymous", () -> c.anonymous()); m.put("first", () -> c.first(List.of()));
    m.forEach((n, r) -> { try { r.run(); } catch (Exception e) { System.out.println("=== " + n.trim()); e.printStackTrace(System.out); } });
  }
}
E
mk shop.rb "" <<'E'
class Cart
  def total(o)
    o.fetch(:total)
  end
  def count(o)
    o.fetch(:count)
  end
  def weight(o)
    Integer(o)
  end
  def ship(o)
    weight(o)
  rescue ArgumentError
    raise "not shipped"
  end
  def each(o)
    [1].each do |x|
      o.nope(x)
    end
  end
  def pay(o)
    o.card
  end
  def load(s)
    require 'json'
    JSON.parse(s)
  end
end
c = Cart.new
[["total", -> { c.total({}) }], ["count", -> { c.count({}) }], ["weight", -> { c.weight("x") }], ["weight", -> { c.ship("x") }], ["each", -> { c.each(nil) }], ["pay", -> { c.pay(nil) }], ["load", -> { c.load("{") }]].each do |n, f|
  f.call
rescue => e
  puts "=== " + n
  puts e.full_message(highlight: false)
end
E
mk shop.php "<?php" <<'E'
namespace App\Shop;
class Cart {
  function total($o) { if (!isset($o['total'])) throw new \InvalidArgumentException("no total"); }
  function count($o) { if (!isset($o['count'])) throw new \InvalidArgumentException("no total"); }
  function ship($o) { try { $this->total($o); } catch (\Exception $e) { throw new \RuntimeException("not shipped", 0, $e); } }
  function pay($o) { return $o->pay(); }
  function each($o) { return array_map(function ($x) use ($o) { throw new \LogicException("each"); }, [1]); }
  function sort($o) { usort($o, fn($a, $b) => throw new \LogicException("sort")); }
  function weight(int $o) { return intdiv(1, $o); }
  static function load($s) { return json_decode($s, false, 9, JSON_THROW_ON_ERROR); }
}
$c = new Cart;
foreach ([['total', fn() => $c->total([])], ['count', fn() => $c->count([])], ['total', fn() => $c->ship([])], ['pay', fn() => $c->pay(null)], ['each', fn() => $c->each([])], ['sort', fn() => $c->sort([1, 2])], ['weight', fn() => $c->weight(0)], ['load', fn() => Cart::load('{')]] as [$n, $f]) {
  try { $f(); } catch (\Throwable $e) { echo "=== $n\n$e\n"; }
}
E
mk shop.exs "" <<'E'
defmodule Cart do
  def total(o), do: (x = Map.fetch!(o, :total); x)
  def count(o), do: (x = Map.fetch!(o, :count); x)
  def weight(o), do: (x = String.to_integer(o); x)
  def ship(o) do
    try do
      (x = weight(o); x)
    rescue
      _ -> reraise RuntimeError, [message: "not shipped"], __STACKTRACE__
    end
  end
  def each(o), do: (r = Enum.map([1], fn _ -> (y = hd(o); y) end); r)
  def pay(o), do: (r = o + 1; r)
  def load(:ok), do: 1
end
for {n, f} <- [{"total", fn -> Cart.total(%{}) end}, {"count", fn -> Cart.count(%{}) end}, {"weight", fn -> Cart.weight(hd(["x"])) end}, {"ship", fn -> Cart.ship("x") end}, {"each", fn -> Cart.each([]) end}, {"pay", fn -> Cart.pay(:a) end}, {"load", fn -> Cart.load(:no) end}] do
  try do f.() rescue e -> IO.puts("=== " <> n); IO.puts(Exception.format(:error, e, __STACKTRACE__)) end
end
E
mk shop.rs "" <<'E'
use std::collections::HashMap;
#[inline(never)] fn total(o: Option<u32>) -> u32 { o.unwrap() }
#[inline(never)] fn count(o: Option<u32>) -> u32 { o.unwrap() }
#[inline(never)] fn weight(s: &str) -> u32 { s.parse::<u32>().unwrap() }
struct Cart;
impl Cart {
    #[inline(never)] fn pay(&self, i: usize) -> u32 { vec![1u32][i] }
    #[inline(never)] fn each(&self) -> u32 { [1u32].iter().map(|x| { if *x > 0 { panic!("each") } else { 1 } }).sum() }
    #[inline(never)] fn load(&self, m: &HashMap<u32, u32>) -> u32 { m[&7] }
}
fn main() {
    let n = std::env::args().nth(1).unwrap();
    println!("{}", match n.as_str() { "total" => total(None), "count" => count(None), "weight" => weight("x"), "pay" => Cart.pay(3), "each" => Cart.each(), _ => Cart.load(&HashMap::new()) });
}
E
mk shop.cs "" <<'E'
using System; using System.Linq; using System.Collections.Generic; using System.Threading.Tasks;
namespace Shop {
class Cart {
  public string Pay(string s) { return s.Trim(); }
  public string Refund(string s) { return s.Trim(); }
  public string Ship(string s) { try { return Pay(s); } catch (Exception e) { throw new InvalidOperationException("not shipped", e); } }
  public int Weight(string s) { return int.Parse(s); }
  public async Task<int> Later(string s) { await Task.Delay(1); return s.Length; }
  public List<int> Each() { return new[] { "x" }.Select(x => int.Parse(x)).ToList(); }
  public int First(List<int> l) { return l.First(); }
  public static void Main() {
    var c = new Cart();
    foreach (var t in new Tuple<string, Action>[] { Tuple.Create<string, Action>("pay", () => c.Pay(null)), Tuple.Create<string, Action>("refund", () => c.Refund(null)), Tuple.Create<string, Action>("pay", () => c.Ship(null)), Tuple.Create<string, Action>("weight", () => c.Weight("x")), Tuple.Create<string, Action>("later", () => c.Later(null).GetAwaiter().GetResult()), Tuple.Create<string, Action>("each", () => c.Each()), Tuple.Create<string, Action>("first", () => c.First(new List<int>())) })
      try { t.Item2(); } catch (Exception e) { Console.WriteLine("=== " + t.Item1); Console.WriteLine(e); }
  }
} }
E
mk shop.go "package main" <<'E'
import ("fmt"; "runtime/debug"; "os")
type cart struct{ m map[string]*int }
func total(o *cart) int { return *o.m["total"] }
func count(o *cart) int { return *o.m["count"] }
func (c *cart) pay(l []int, i int) int { return l[i] }
func (c *cart) ship() { defer func() { if e := recover(); e != nil { panic(fmt.Errorf("not shipped: %v", e)) } }(); c.weight(0) }
func (c *cart) weight(i int) int { return 1 / i }
func (c *cart) each() { for range 1 { func() { panic("each") }() } }
func (c *cart) load(v any) string { return v.(string) }
func run(n string, f func()) { defer func() { if recover() != nil { fmt.Println("=== " + n); os.Stdout.Write(debug.Stack()) } }(); f() }
func main() {
	c := &cart{}
	run("total", func() { total(c) })
	run("count", func() { count(c) })
	run("pay", func() { c.pay(nil, 3) })
	run("ship", func() { c.ship() })
	run("weight", func() { c.weight(0) })
	run("each", func() { c.each() })
	run("load", func() { c.load(1) })
}
E
mk shop.pl "" <<'E'
use Carp; use List::Util qw(first);
sub total { confess "none" } sub lines_of { first { confess "none" } 1 }
for (["total", \&total], ["lines", \&lines_of]) { eval { $_->[1]->() }; print "=== $_->[0]\n$@" }
E
mkdir -p out
python3 shop.py >> out/python.txt
node shop.js >> out/node.txt
java Shop.java >> out/java.txt
ruby shop.rb >> out/ruby.txt
php shop.php >> out/php.txt
elixir shop.exs 2>/dev/null >> out/elixir.txt
rustc -g shop.rs -o shoprs 2>/dev/null && for n in total count weight pay each load; do echo "=== $n" >> out/rust.txt; RUST_BACKTRACE=1 ./shoprs $n 2>&1 | grep -v '^note:' | grep . >> out/rust.txt; done
mcs -r:System.Core -debug shop.cs && mono --debug shop.exe >> out/dotnet.txt
go run -gcflags=-l shop.go >> out/go.txt
perl shop.pl >> out/perl.txt
