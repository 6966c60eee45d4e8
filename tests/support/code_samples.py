"""Small files of several languages, and what is found in them."""

from __future__ import annotations

from typing import Final, NamedTuple


class Sample(NamedTuple):
    """A file and what is found in it.

    Attributes:
        data: Its bytes.
        symbols: Each with its kind, with commas between.
        uses: Some of the names that it uses, each after its role and the symbol that uses it.
        imports: Modules, names and aliases.
        above: A symbol, its signature, its summary, its first and its last line.
    """

    data: bytes
    symbols: str
    uses: str
    imports: list[tuple[str, str, str]]
    above: tuple[str, str, str, tuple[int, int]]


SAMPLES: Final[dict[str, Sample]] = {
    "src/Ferry.cs": Sample(
        b"""using System;
using Harbour.Parts;
using static Harbour.Tides;
using Rope = Harbour.Parts.Line;

namespace Harbour.Boats
{
    /// <summary>Carries <see cref="Car"/> over. It is slow.</summary>
    [Serializable]
    public sealed class Ferry<T> : Vessel<T>, IFloats where T : Cargo
    {
        private const int MostCars = 40;
        private readonly List<Rope> ropes = new();
        public int Count { get; private set; }
        public event EventHandler? Landed;

        public Ferry(int size) : base(size) { }

        // Takes a car aboard.
        protected override async Task<bool> Load(Car car)
        {
            bool Fits(int more) => more < MostCars;
            await Weigh(car);
            this.ropes.Add(new Rope(car));
            return car?.Check<T>() ?? false;
        }

        public enum Deck { Upper, Lower = 2 }
        public delegate void Rings(int times);
    }

    public interface IFloats : IMoves { void Sink(); }
    public record Fare(int Amount, string Currency) : Money(Amount);
    internal static class Cars { public static int Twice(this Car car) => 2; }
    public struct Spot { int row, column; }
}
""",
        """
        class Ferry, constant Ferry.MostCars, variable Ferry.ropes, variable Ferry.Count, variable
        Ferry.Landed, method Ferry.Ferry, method Ferry.Load, function Ferry.Load.Fits, enum Ferry.Deck,
        constant Ferry.Deck.Upper, constant Ferry.Deck.Lower, type Ferry.Rings, interface IFloats, method
        IFloats.Sink, class Fare, class Cars, method Cars.Twice, struct Spot, variable Spot.row, variable
        Spot.column
        """,
        """
        call Serializable, inherits Ferry>Vessel, inherits Ferry>IFloats, type Ferry>Cargo, type Ferry>Rope,
        call Ferry.Load>Weigh, call Ferry.Load>this.ropes.Add, call Ferry.Load>Rope, call
        Ferry.Load>car.Check, inherits IFloats>IMoves, inherits Fare>Money, type Cars.Twice>Car
        """,
        [
            ("System", "*", ""),
            ("Harbour.Parts", "*", ""),
            ("Harbour.Tides", "*", ""),
            ("Harbour.Parts", "Line", "Rope"),
        ],
        (
            "Ferry",
            "[Serializable] public sealed class Ferry<T> : Vessel<T>, IFloats where T : Cargo",
            "Carries Car over.",
            (8, 30),
        ),
    ),
    "src/Ferry.php": Sample(
        b"""<?php
declare(strict_types=1);

namespace Harbour\\Boats;

use Harbour\\Parts\\Line as Rope;
use Harbour\\Parts\\{Anchor, Buoy as Float_};
use function Harbour\\Tides\\weigh;

require_once __DIR__ . '/helpers.php';
include 'config.php';

const MOST_CARS = 40;
define('FEWEST', 1);

/**
 * Carries cars over. It is slow.
 */
#[Entity]
final class Ferry extends Vessel implements Floats, \\Countable
{
    use Rings, Logs;

    public const UPPER = 1, LOWER = 2;
    private array $ropes = [];

    public function __construct(private int $size, public Captain $captain)
    {
        parent::__construct($size);
    }

    // Takes a car aboard.
    protected function load(Car $car): ?Fare
    {
        weigh($car);
        $this->ropes->add(new Rope($car));
        static::check();
        return Anchor::drop() ?? $car?->pay();
    }
}

interface Floats extends Moves { public function sink(): void; }
trait Rings { public function ring(int $times): int { return \\strlen((string) $times); } }
enum Deck: string implements HasLabel { case Upper = 'u'; case Lower = 'l'; }
function total(array $cars): int { return count($cars); }
?>
<p>There are <?= total($cars) ?> cars.</p>
""",
        """
        constant MOST_CARS, constant FEWEST, class Ferry, constant Ferry.UPPER, constant Ferry.LOWER,
        variable Ferry.ropes, method Ferry.__construct, method Ferry.load, interface Floats, method
        Floats.sink, trait Rings, method Rings.ring, enum Deck, constant Deck.Upper, constant Deck.Lower,
        function total
        """,
        """
        call Entity, inherits Ferry>Vessel, inherits Ferry>Floats, inherits Ferry>Countable, inherits
        Ferry>Rings, type Ferry.load>Car, type Ferry.load>Fare, call Ferry.load>weigh, call
        Ferry.load>$this.ropes.add, call Ferry.load>Rope, call Ferry.load>static.check, call
        Ferry.load>Anchor.drop, call Ferry.load>$car.pay, inherits Floats>Moves, call Rings.ring>strlen,
        inherits Deck>HasLabel, call total
        """,
        [
            ("Harbour\\Parts", "Line", "Rope"),
            ("Harbour\\Parts", "Anchor", ""),
            ("Harbour\\Parts", "Buoy", "Float_"),
            ("Harbour\\Tides", "weigh", ""),
            ("helpers.php", "", ""),
            ("config.php", "", ""),
        ],
        (
            "Ferry",
            "#[Entity] final class Ferry extends Vessel implements Floats, \\Countable",
            "Carries cars over.",
            (16, 40),
        ),
    ),
    "lib/ferry.rb": Sample(
        b"""# frozen_string_literal: true

require 'json'
require_relative 'parts/line'
autoload :Anchor, 'harbour/anchor'

module Harbour
  MOST_CARS = 40

  # Carries cars over. It is slow.
  class Ferry < Vessel::Base
    include Floats
    attr_reader :ropes, :captain

    # Takes a car aboard.
    def load(car, most = MOST_CARS)
      weigh(car)
      @ropes.push(Line.new(car))
      car&.check!
    end

    def self.build(*sizes) = new(*sizes)

    class << self
      def empty?; end
    end

    def ==(other); end

    private def hide; end

    alias put load
    Sunk = Class.new(StandardError)
    Spot = Struct.new(:row) do
      def taken; end
    end
  end

  class Boats::Raft; end
end

def total(cars)
  cars.sum { |car| car.fare }
end
""",
        """
        module Harbour, constant Harbour.MOST_CARS, class Harbour.Ferry, variable Harbour.Ferry.ropes,
        variable Harbour.Ferry.captain, method Harbour.Ferry.load, method Harbour.Ferry.build, method
        Harbour.Ferry.empty?, method Harbour.Ferry.==, method Harbour.Ferry.hide, method Harbour.Ferry.put,
        class Harbour.Ferry.Sunk, class Harbour.Ferry.Spot, method Harbour.Ferry.Spot.taken, class
        Harbour.Boats.Raft, function total
        """,
        """
        inherits Harbour.Ferry>Vessel.Base, inherits Harbour.Ferry>Floats, call Harbour.Ferry.load>weigh,
        call Harbour.Ferry.load>ropes.push, call Harbour.Ferry.load>Line.new, call
        Harbour.Ferry.load>car.check!, other Harbour.Ferry.load>MOST_CARS, call total>cars.sum
        """,
        [("json", "", ""), ("./parts/line", "", ""), ("harbour/anchor", "", "")],
        ("Harbour.Ferry", "class Ferry < Vessel::Base", "Carries cars over.", (10, 37)),
    ),
    "bin/ferry.sh": Sample(
        b"""#!/usr/bin/env bash
set -euo pipefail
source ./lib/common.sh
. "$(dirname "$0")/lib/log.sh"
source "${HERE}/env.sh"
source <(generated)

readonly MOST_CARS=40
export harbour=north

# Takes a car aboard. It may fail.
load() {
  local car=$1
  say "loading ${car}" | tee -a "$LOG"
  _inner() { :; }
}

function cross {
  if is_ready; then load "$(next_of cars)"; fi
}

cross "$@"
""",
        """
        constant MOST_CARS, variable harbour, function load, function load._inner, function cross
        """,
        "call load>say, call load>tee, call cross>is_ready, call cross>load, call cross>next_of, call cross",
        [("./lib/common.sh", "", ""), ("lib/log.sh", "", ""), ("env.sh", "", "")],
        ("load", "load()", "Takes a car aboard.", (11, 16)),
    ),
    "src/Ferry.kt": Sample(
        b"""@file:JvmName("Boats")

package harbour.boats

import harbour.parts.Line
import harbour.parts.Anchor as Hook
import harbour.tides.*

const val MOST_CARS = 40
private val hidden = 1
typealias Ropes = List<Line>

/**
 * Carries cars over. It is slow.
 */
@Entity("ferry")
open class Ferry<T : Cargo>(
    private val size: Int,
    captain: String,
) : Vessel<T>(size), Floats by raft {
    private val ropes = mutableListOf<Line>()

    // Takes a car aboard.
    override suspend fun load(car: Car): Fare? {
        fun fits() = true
        weigh(car)
        this.ropes.add(Line(car))
        car?.check()
        return cars.map { it.fare }.first()
    }

    companion object {
        const val FEWEST = 1
        fun build(): Ferry<Car> = Ferry(1, "x")
    }

    enum class Deck { UPPER, LOWER }
}

interface Floats : Moves {
    fun sink()
}
data class Fare(val amount: Int)
object Harbour { fun open() {} }
fun Ferry<Car>.twice(times: Int): Int = times * 2
fun total(cars: List<Car>) = cars.sumOf { it.fare }
""",
        """
        constant MOST_CARS, variable hidden, type Ropes, class Ferry, variable Ferry.size, variable
        Ferry.ropes, method Ferry.load, function Ferry.load.fits, constant Ferry.FEWEST, method Ferry.build,
        enum Ferry.Deck, constant Ferry.Deck.UPPER, constant Ferry.Deck.LOWER, interface Floats, method
        Floats.sink, class Fare, variable Fare.amount, class Harbour, method Harbour.open, method
        Ferry.twice, function total
        """,
        """
        call Entity, inherits Ferry>Vessel, inherits Ferry>Floats, type Ferry>Cargo, call
        Ferry.ropes>mutableListOf, type Ferry.load>Car, call Ferry.load>weigh, call
        Ferry.load>this.ropes.add, call Ferry.load>Line, call Ferry.load>car.check, inherits Floats>Moves,
        call Ferry.build>Ferry, call total>cars.sumOf
        """,
        [("harbour.parts", "Line", ""), ("harbour.parts", "Anchor", "Hook"), ("harbour.tides", "*", "")],
        (
            "Ferry",
            (
                '@Entity("ferry") open class Ferry<T : Cargo>( private val size: Int, captain: String, ) : '
                "Vessel<T>(size), Floats by raft"
            ),
            "Carries cars over.",
            (13, 38),
        ),
    ),
    "lua/ferry.lua": Sample(
        b"""local json = require("json")
local Line = require "parts.line"
require('harbour.log').start()

local MOST_CARS = 40
local Ferry = {}
Ferry.__index = Ferry

--- Carries cars over. It is slow.
-- @param size how long it is
function Ferry.new(size)
  local self = setmetatable({}, Ferry)
  return self
end

--[[ Takes a car aboard. ]]
function Ferry:load(car) -- one at a time
  weigh(car)
  self.ropes:add(Line.new(car))
end

local function fits(car) return car end
Ferry.sink = function(deep) fits(deep) end
local tools = { ring = function() end }
function total(cars) return #cars end

return Ferry
""",
        """
        constant MOST_CARS, variable Ferry, method Ferry.new, method Ferry.load, function fits, method
        Ferry.sink, variable tools, function tools.ring, function total
        """,
        """
        call Ferry.new>setmetatable, call Ferry.load>weigh, call Ferry.load>self.ropes.add, call
        Ferry.load>Line.new, call Ferry.sink>fits
        """,
        [("json", "", "json"), ("parts.line", "", "Line"), ("harbour.log", "", "")],
        ("Ferry.new", "function Ferry.new(size)", "Carries cars over.", (9, 14)),
    ),
    "Sources/Boats/Ferry.swift": Sample(
        b"""import Foundation
import struct Parts.Line
@testable import Harbour

let mostCars = 40
typealias Ropes = [Line]

/// Carries cars over. It is slow.
@MainActor
public final class Ferry<T: Cargo>: Vessel<T>, Floats {
    private let ropes: [Line] = []
    var title: String { "ferry \\(count)" }

    init(size: Int) { super.init(size: size) }

    // Takes a car aboard.
    override func load(_ car: Car) async throws -> Fare? {
        func fits() -> Bool { true }
        weigh(car)
        self.ropes.append(Line(car))
        car?.check()
        return Tides.Table.next()
    }

    enum Deck: String, CaseIterable { case upper, lower }
}

protocol Floats: Moves { func sink() -> Bool; var depth: Int { get }; associatedtype Water }
struct Fare { let amount: Int }
extension Ferry: Countable where T: Equatable { func twice() -> Int { 2 } }
actor Harbour { func open() {} }
func total(_ cars: [Car]) -> Int { cars.reduce(0) { $0 + $1.fare } }
""",
        """
        variable mostCars, type Ropes, class Ferry, variable Ferry.ropes, variable Ferry.title, method
        Ferry.init, method Ferry.load, function Ferry.load.fits, enum Ferry.Deck, constant Ferry.Deck.upper,
        constant Ferry.Deck.lower, interface Floats, method Floats.sink, variable Floats.depth, type
        Floats.Water, struct Fare, variable Fare.amount, method Ferry.twice, class Harbour, method
        Harbour.open, function total
        """,
        """
        call MainActor, inherits Ferry>Vessel, inherits Ferry>Floats, type Ferry>Cargo, type Ferry.load>Car,
        call Ferry.load>weigh, call Ferry.load>self.ropes.append, call Ferry.load>Line, call
        Ferry.load>car.check, call Ferry.load>Tides.Table.next, inherits Ferry.Deck>CaseIterable, inherits
        Floats>Moves, inherits Ferry>Countable, call total>cars.reduce
        """,
        [("Foundation", "*", ""), ("Parts", "Line", ""), ("Harbour", "*", "")],
        (
            "Ferry",
            "@MainActor public final class Ferry<T: Cargo>: Vessel<T>, Floats",
            "Carries cars over.",
            (8, 26),
        ),
    ),
    "src/Ferry.scala": Sample(
        b"""package harbour.boats

import scala.collection.mutable
import harbour.parts.{Line => Rope, Anchor, _}
import harbour.tides.*, harbour.Buoy

/** Carries cars over. It is slow. */
@Entity("ferry")
abstract class Ferry[T <: Cargo](private val size: Int) extends Vessel[T](size) with Floats {
  private val ropes = mutable.Buffer.empty[Rope]
  var count: Int = 0
  type Ropes = List[Rope]

  // Takes a car aboard.
  override def load(car: Car): Option[Fare] = {
    def fits(): Boolean = true
    weigh(car)
    this.ropes.add(new Rope(car))
    Ferry.build()
  }

  def sink(): Unit
}

object Ferry { val MOST = 40; def build(): Ferry[Car] = null }
trait Floats extends Moves { def depth: Int }
case class Fare(amount: Int) derives Show
enum Deck { case Upper, Lower }
given ordering: Ordering[Fare] = null
def total(cars: List[Car]): Int = cars.map(_.fare).sum
""",
        """
        class Ferry, variable Ferry.ropes, variable Ferry.count, type Ferry.Ropes, method Ferry.load,
        function Ferry.load.fits, method Ferry.sink, class Ferry, constant Ferry.MOST, method Ferry.build,
        trait Floats, method Floats.depth, class Fare, enum Deck, constant Deck.Upper, constant Deck.Lower,
        variable ordering, function total
        """,
        """
        call Entity, inherits Ferry>Vessel, inherits Ferry>Floats, type Ferry>Cargo, type Ferry.load>Car,
        call Ferry.load>weigh, call Ferry.load>this.ropes.add, call Ferry.load>Rope, call
        Ferry.load>Ferry.build, inherits Floats>Moves, inherits Fare>Show, call total>cars.map
        """,
        [
            ("scala.collection", "mutable", ""),
            ("harbour.parts", "Line", "Rope"),
            ("harbour.parts", "Anchor", ""),
            ("harbour.parts", "*", ""),
            ("harbour.tides", "*", ""),
            ("harbour", "Buoy", ""),
        ],
        (
            "Ferry",
            (
                '@Entity("ferry") abstract class Ferry[T <: Cargo](private val size: Int) extends '
                "Vessel[T](size) with Floats"
            ),
            "Carries cars over.",
            (7, 23),
        ),
    ),
}
