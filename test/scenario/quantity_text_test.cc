#include "sim/scenario/quantity_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace quadrille::scenario {
namespace {

TEST(QuantityText, DecimalAndBinaryPrefixesOfBytesDiffer) {
  EXPECT_EQ(ParseBytes("80 GB")->value(), 80'000'000'000);
  EXPECT_EQ(ParseBytes("80 GiB")->value(), 85'899'345'920);
  EXPECT_EQ(ParseBytes("1.5 MiB")->value(), 1'572'864);
  EXPECT_EQ(ParseBytes("7 B")->value(), 7);
}

TEST(QuantityText, BitsAndBytesPerSecondDiffer) {
  EXPECT_DOUBLE_EQ(ParseBandwidth("400 Gb/s")->value(), 50e9);
  EXPECT_DOUBLE_EQ(ParseBandwidth("400 GB/s")->value(), 400e9);
  EXPECT_DOUBLE_EQ(ParseBandwidth("3.35 TB/s")->value(), 3.35e12);
}

TEST(QuantityText, DurationsAreExactPicoseconds) {
  EXPECT_EQ(ParseDuration("0.7 us")->count(), 700'000);
  EXPECT_EQ(ParseDuration("14 us")->count(), 14'000'000);
  EXPECT_EQ(ParseDuration("2.5 ns")->count(), 2'500);
  EXPECT_EQ(ParseDuration("1 h")->count(), 3'600'000'000'000'000);
  EXPECT_EQ(ParseDuration("0 s")->count(), 0);
}

TEST(QuantityText, ACorrectionMayBeNegative) {
  EXPECT_EQ(ParseSignedDuration("-2.5 us")->count(), -2'500'000);
  EXPECT_EQ(ParseSignedDuration("2.5 us")->count(), 2'500'000);
  EXPECT_FALSE(ParseSignedDuration("--1 us"));
  EXPECT_FALSE(ParseSignedDuration("-"));
}

TEST(QuantityText, TheSpaceBeforeTheUnitIsOptional) {
  EXPECT_EQ(ParseDuration("0.7us")->count(), 700'000);
  EXPECT_EQ(ParseBytes("80GiB")->value(), ParseBytes("80  GiB")->value());
}

TEST(QuantityText, FlopRatesAndRatiosAndCounts) {
  EXPECT_DOUBLE_EQ(ParseFlopRate("989 TFLOP/s")->value(), 989e12);
  EXPECT_DOUBLE_EQ(ParseRatio("95 %")->value(), 0.95);
  EXPECT_DOUBLE_EQ(ParseRatio("0.95")->value(), 0.95);
  EXPECT_EQ(ParseTokens("15.6T")->value(), 15'600'000'000'000);
  EXPECT_EQ(ParseParameters("40M")->value(), 40'000'000);
  EXPECT_EQ(ParseParameters("1234")->value(), 1'234);
}

TEST(QuantityText, TextsThatSayTheSameAreOneAndOthersAreNot) {
  const std::vector<std::vector<std::string>> same = {
      {"400 Gb/s", "50 GB/s", "50e9 B/s", "50000 MB/s"},
      {"0.7 us", "700 ns", "700000ps"},
      {"54 d", "1296 h"},
      {"1 h", "60 min", "3600 s"},
      {"95 %", "0.95"},
      {"15.6T", "15600000000000"},
      {"2B", "2000000000", "2e9"},
      {"2 B"},
      {"1 GiB", "1024 MiB", "1073741824 B"},
      {"[400 Gb/s, 1 TB/s]", "[50 GB/s, 1000 GB/s]"},
      {"989 TFLOP/s", "0.989 PFLOP/s"},
      {"-2.5 us", "-2500 ns"},
      {"18446744073709551615"},
      {"18446744073709551614"},
      {"7b-chat"},
      {"bf16"},
      {""},
      {"[]"}};
  for (const auto& texts : same) {
    for (const auto& others : same) {
      for (const std::string& a : texts) {
        for (const std::string& b : others) {
          EXPECT_EQ(CanonicalQuantity(a) == CanonicalQuantity(b), &texts == &others)
              << a << " " << b;
        }
      }
    }
  }
  EXPECT_EQ(CanonicalQuantity("7b-chat"), "7b-chat");
}

TEST(QuantityText, AMissingUnitIsAnErrorThatListsTheAcceptedOnes) {
  EXPECT_EQ(ParseBytes("80").error(),
            "'80' has no unit, as in '80 GiB'; accepted: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB");
  EXPECT_EQ(ParseDuration("0").error(),
            "'0' has no unit, as in '0.7 us'; accepted: ps, ns, us, ms, s, min, h");
}

TEST(QuantityText, AWrongUnitIsAnErrorThatListsTheAcceptedOnes) {
  EXPECT_EQ(ParseFlopRate("989 TFLOPS").error(),
            "unknown unit 'TFLOPS' in '989 TFLOPS'; accepted: GFLOP/s, TFLOP/s, PFLOP/s, EFLOP/s");
  EXPECT_EQ(ParseBytes("80 Gb").error(),
            "unknown unit 'Gb' in '80 Gb'; accepted: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB");
  EXPECT_FALSE(ParseBytes("80 gb"));
  EXPECT_FALSE(ParseBandwidth("80 GB"));
  EXPECT_FALSE(ParseDuration("3 sec"));
}

TEST(QuantityText, NegativeInfiniteAndOverflowingQuantitiesAreRefused) {
  EXPECT_EQ(ParseDuration("-1 us").error(), "'-1 us' must not be negative");
  EXPECT_EQ(ParseBytes("1e30 TB").error(), "'1e30 TB' is out of range");
  EXPECT_EQ(ParseBytes("1e400 B").error(), "'1e400' is out of range");
  EXPECT_EQ(ParseDuration("1e9 h").error(), "'1e9 h' is out of range");
  EXPECT_FALSE(ParseBandwidth("inf GB/s"));
  EXPECT_FALSE(ParseBandwidth("nan GB/s"));
  EXPECT_FALSE(ParseBandwidth(""));
  EXPECT_FALSE(ParseBandwidth("GB/s"));
  EXPECT_FALSE(ParseBytes("1_000 B"));
  EXPECT_FALSE(ParseBytes("0x10 B"));
  EXPECT_FALSE(ParseBytes("1,5 GB"));
}

TEST(QuantityText, IntegersAreDecimalAndNothingElse) {
  EXPECT_EQ(*ParseInteger("0"), 0);
  EXPECT_EQ(*ParseInteger("-12"), -12);
  EXPECT_EQ(*ParseInteger("9223372036854775807"), 9223372036854775807);
  EXPECT_EQ(ParseInteger("010").error(), "'010' has a leading zero, which YAML may read as octal");
  EXPECT_EQ(ParseInteger("0x10").error(), "'0x10': write the number in decimal");
  EXPECT_EQ(ParseInteger("1e3").error(), "expected a whole number, got '1e3'");
  EXPECT_EQ(ParseInteger("9223372036854775808").error(), "'9223372036854775808' is out of range");
  for (const char* text :
       {"", "-", "+1", "1_000", "1.0", " 1", "1 ", "0b1", "--1", "\xef\xbc\x91"}) {
    EXPECT_FALSE(ParseInteger(text)) << text;
  }
  EXPECT_FALSE(ParseUnsigned("-1"));
  EXPECT_EQ(*ParseUnsigned("18446744073709551615"), 18446744073709551615u);
}

TEST(QuantityText, TruthHasTwoSpellings) {
  EXPECT_TRUE(*ParseBool("true"));
  EXPECT_FALSE(*ParseBool("false"));
  for (const char* text : {"yes", "no", "on", "off", "True", "TRUE", "1", "y"}) {
    EXPECT_FALSE(ParseBool(text)) << text;
  }
}

}  // namespace
}  // namespace quadrille::scenario
