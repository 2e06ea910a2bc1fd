#include "sim/program/layout.h"

#include <gtest/gtest.h>

#include "sim/base/result.h"

namespace quadrille::program {
namespace {

using model::PieceKind;

model::TransformerConfig Layers(std::int32_t layers, std::int32_t prediction_modules = 0) {
  model::TransformerConfig config;
  config.layers = layers;
  config.multi_token_prediction_layers = prediction_modules;
  return config;
}

// One letter per piece, as Megatron writes layouts.
std::string Text(const StageLayout& layout) {
  std::string text;
  for (std::size_t stage = 0; stage < layout.size(); ++stage) {
    if (stage > 0) text += '|';
    for (const model::Piece& piece : layout[stage]) {
      switch (piece.kind) {
        case PieceKind::kEmbedding: text += 'E'; break;
        case PieceKind::kLayer: text += 't'; break;
        case PieceKind::kMultiTokenPrediction: text += 'm'; break;
        case PieceKind::kHead: text += 'L'; break;
      }
    }
  }
  return text;
}

std::string Built(const model::TransformerConfig& config, const LayoutOptions& options,
                  std::int32_t pipeline, std::int32_t virtual_stages) {
  const auto layout = BuildLayout(config, options, pipeline, virtual_stages);
  return layout ? Text(*layout) : "refused: " + ToString(layout.error());
}

LayoutOptions FromText(const std::string& text) {
  LayoutOptions options;
  options.pipeline_layout = text;
  return options;
}

TEST(Layout, AnEvenSplitGivesEveryStageTheSameNumberOfLayers) {
  EXPECT_EQ(Built(Layers(8), {}, 4, 1), "Ett|tt|tt|ttL");
  EXPECT_EQ(Built(Layers(8), {}, 2, 2), "Ett|tt|tt|ttL");
  EXPECT_EQ(Built(Layers(3), {}, 1, 1), "EtttL");
}

TEST(Layout, FirstAndLastChunkOfThe405BJobHoldOneDecoderLayerEach) {
  LayoutOptions options;
  options.embedding_counts_as_layer = true;
  options.loss_counts_as_layer = true;
  const auto layout = BuildLayout(Layers(126), options, 8, 8);
  ASSERT_TRUE(layout) << ToString(layout.error());
  ASSERT_EQ(layout->size(), 64u);
  EXPECT_EQ(Describe(layout->front()), "1 decoder layer, embedding");
  EXPECT_EQ(Describe(layout->back()), "1 decoder layer, head and loss");
  for (std::size_t stage = 1; stage < 63; ++stage) {
    EXPECT_EQ(Describe((*layout)[stage]), "2 decoder layers") << stage;
  }
}

TEST(Layout, LayersAreNumberedInModelOrderAcrossStages) {
  const auto layout = BuildLayout(Layers(8), {}, 2, 2);
  ASSERT_TRUE(layout);
  std::int32_t next = 0;
  for (const auto& stage : *layout) {
    for (const model::Piece& piece : stage) {
      if (piece.kind == PieceKind::kLayer) {
        EXPECT_EQ(piece.layer, next++);
      }
    }
  }
  EXPECT_EQ(next, 8);
}

TEST(Layout, OnlyTheEmbeddingMayTakeASlot) {
  LayoutOptions options;
  options.embedding_counts_as_layer = true;
  EXPECT_EQ(Built(Layers(7), options, 4, 1), "Et|tt|tt|ttL");
}

TEST(Layout, StatedFirstAndLastRanksShareTheirLayersOverTheirChunks) {
  LayoutOptions options;
  options.first_stage_layers = 2;
  options.last_stage_layers = 4;
  EXPECT_EQ(Built(Layers(14), options, 4, 2), "Et|tt|tt|tt|t|tt|tt|ttL");
  options.last_stage_layers.reset();
  EXPECT_EQ(Built(Layers(14), options, 4, 1), "Ett|tttt|tttt|ttttL");
}

TEST(Layout, PredictionModulesSitBeforeTheHeadOnTheLastStage) {
  EXPECT_EQ(Built(Layers(4, 1), {}, 2, 1), "Ett|ttmL");
}

TEST(Layout, AMegatronStringIsTakenLiterally) {
  EXPECT_EQ(Built(Layers(6), FromText("Et|tt|tt|tL"), 4, 1), "Et|tt|tt|tL");
  EXPECT_EQ(Built(Layers(6), FromText("Et | t*2, |(t)*2| tL"), 2, 2), "Et|tt|tt|tL");
  // An empty stage is legal: Megatron allows a stage that only holds the loss.
  EXPECT_EQ(Built(Layers(4), FromText("Ett|tt|L"), 3, 1), "Ett|tt|L");
}

TEST(Layout, RepetitionMultipliesAParenthesisedGroup) {
  // DeepSeek-V3's layout in Megatron-LM: 61 layers and one prediction module on 16 x 2 stages.
  EXPECT_EQ(Built(Layers(61, 1), FromText("Et*3|(tt|)*29m|L"), 16, 2), [] {
    std::string text = "Ettt|";
    for (int i = 0; i < 29; ++i) text += "tt|";
    return text + "m|L";
  }());
}

TEST(Layout, AStringThatDoesNotParseIsRefusedWithTheGrammar) {
  for (const char* text :
       {"Et|x|tL", "Et|(tt|tL", "Et*|tL", "*2Et|tL", "Et)|tL", "Et*99999999|tL"}) {
    const std::string answer = Built(Layers(4), FromText(text), 2, 1);
    EXPECT_NE(answer.find("does not parse"), std::string::npos) << text << ": " << answer;
  }
}

TEST(Layout, AStringThatMiscountsIsRefusedWithEveryCount) {
  const std::string answer = Built(Layers(5, 1), FromText("ttt|t"), 4, 1);
  EXPECT_NE(answer.find("has 2 stages; 4 needed"), std::string::npos) << answer;
  EXPECT_NE(answer.find("has 4 decoder layers (t); 5 needed"), std::string::npos) << answer;
  EXPECT_NE(answer.find("has 0 prediction modules (m); 1 needed"), std::string::npos) << answer;
  EXPECT_NE(answer.find("has 0 embeddings (E); 1 needed"), std::string::npos) << answer;
  EXPECT_NE(answer.find("has 0 losses (L); 1 needed"), std::string::npos) << answer;
  EXPECT_NE(Built(Layers(4), FromText("tE|tttL"), 2, 1).find("must begin with E"),
            std::string::npos);
  EXPECT_NE(Built(Layers(4), FromText("|EttttL"), 2, 1).find("must begin with E"),
            std::string::npos);
}

TEST(Layout, AnUnevenSplitIsRefusedWithItsProduct) {
  const std::string answer = Built(Layers(126), {}, 8, 8);
  EXPECT_NE(answer.find("126 decoder layers do not divide over pipeline 8 x virtual_stages 8 = 64"),
            std::string::npos)
      << answer;
  LayoutOptions options;
  options.embedding_counts_as_layer = true;
  EXPECT_NE(Built(Layers(126), options, 8, 8).find("(+1 counted slots)"), std::string::npos);
}

TEST(Layout, StatedRanksThatLeaveAnUnevenRestAreRefused) {
  LayoutOptions options;
  options.first_stage_layers = 3;
  EXPECT_NE(Built(Layers(8), options, 2, 2).find("do not divide over 2 virtual stages"),
            std::string::npos);
  EXPECT_NE(Built(Layers(8), options, 3, 1).find("5 decoder layers left"), std::string::npos);
  options.first_stage_layers = 9;
  EXPECT_NE(Built(Layers(8), options, 2, 1).find("-1 decoder layers left"), std::string::npos);
}

}  // namespace
}  // namespace quadrille::program
