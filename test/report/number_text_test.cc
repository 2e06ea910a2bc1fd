#include "sim/report/number_text.h"

#include <gtest/gtest.h>

namespace quadrille::report {
namespace {

TEST(NumberTextTest, TimeHasFourDigitsInAUnitThatFits) {
  EXPECT_EQ(TimeText(Duration(0)), "0 s");
  EXPECT_EQ(TimeText(Duration(5)), "5 ps");
  EXPECT_EQ(TimeText(Duration(1'500)), "1.5 ns");
  EXPECT_EQ(TimeText(Duration(12'345'678)), "12.35 us");
  EXPECT_EQ(TimeText(Duration(530'240'000'000)), "530.2 ms");
  EXPECT_EQ(TimeText(Duration(19'842'000'000'000)), "19.84 s");
  EXPECT_EQ(TimeText(Duration(123'456'000'000'000)), "123.5 s");
  EXPECT_EQ(TimeText(Duration(-1'500)), "-1.5 ns");
}

TEST(NumberTextTest, SecondsAreTheDecimalThatIsExact) {
  EXPECT_EQ(Seconds(Duration(300'000'000'001)), 0.300000000001);
  EXPECT_NE(ToSeconds(Duration(300'000'000'001)), 0.300000000001) << "why Seconds exists";
}

TEST(NumberTextTest, AValueThatRoundsUpToAThousandMovesToTheNextUnit) {
  EXPECT_EQ(TimeText(Duration(999'990'000'000)), "1 s");
  EXPECT_EQ(BytesText(Bytes(999'960)), "1 MB");
  EXPECT_EQ(BytesText(Bytes(999'940)), "999.9 kB");
}

TEST(NumberTextTest, SizesAreDecimal) {
  EXPECT_EQ(BytesText(Bytes(0)), "0 B");
  EXPECT_EQ(BytesText(Bytes(1024)), "1.024 kB");
  EXPECT_EQ(BytesText(Bytes(470'000'000)), "470 MB");
  EXPECT_EQ(BytesText(Bytes(68'021'000'000)), "68.02 GB");
  EXPECT_EQ(RateText(BytesPerSecond(450e9)), "450 GB/s");
}

TEST(NumberTextTest, FlopsAreAlwaysTera) {
  EXPECT_EQ(FlopsText(FlopsPerSecond(989.4e12)), "989.4 TFLOP/s");
  EXPECT_EQ(FlopsText(FlopsPerSecond(1979e12)), "1979 TFLOP/s");
}

TEST(NumberTextTest, SharesAreInTenthsOfAPercentAndZeroHasNoSign) {
  EXPECT_EQ(PercentText(Ratio(0.12727)), "12.7 %");
  EXPECT_EQ(PercentText(Ratio(-0.00001)), "0.0 %");
  EXPECT_EQ(PercentText(Ratio(-0.01)), "-1.0 %");
}

TEST(NumberTextTest, CountsAreGroupedByThree) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1024), "1,024");
  EXPECT_EQ(CountText(-12345678), "-12,345,678");
}

TEST(NumberTextTest, ParametersAreInBillions) {
  EXPECT_EQ(ParametersText(ParameterCount(405'853'388'800)), "405.9 B");
  EXPECT_EQ(ParametersText(ParameterCount(8'030'000'000)), "8.03 B");
  EXPECT_EQ(ParametersText(ParameterCount(12)), "12");
}

TEST(NumberTextTest, HashesAreSixteenDigits) { EXPECT_EQ(HexText(0xabc), "0000000000000abc"); }

TEST(NumberTextTest, SecondsOfATableHaveAsManyDecimalsAsAsked) {
  EXPECT_EQ(SecondsText(Duration(19'842'400'000'000), 3), "19.842");
  EXPECT_EQ(SecondsText(Duration(-1), 3), "0.000");
}

}  // namespace
}  // namespace quadrille::report
