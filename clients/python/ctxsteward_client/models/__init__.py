""" Contains all the data models used in inputs/outputs """

from .append_input import AppendInput
from .append_result import AppendResult
from .appended_message import AppendedMessage
from .budgets_input import BudgetsInput
from .build_input import BuildInput
from .build_input_policy_type_0 import BuildInputPolicyType0
from .build_input_provider_type_0 import BuildInputProviderType0
from .build_result import BuildResult
from .build_result_provider_type_0 import BuildResultProviderType0
from .build_result_request_type_0 import BuildResultRequestType0
from .changelog_entry import ChangelogEntry
from .changelog_entry_change import ChangelogEntryChange
from .changelog_entry_change_block import ChangelogEntryChangeBlock
from .changelog_entry_change_kind import ChangelogEntryChangeKind
from .compact_dry_run import CompactDryRun
from .compact_input import CompactInput
from .compaction import Compaction
from .compaction_price import CompactionPrice
from .compression_report import CompressionReport
from .compression_report_loss import CompressionReportLoss
from .compression_report_loss_kind import CompressionReportLossKind
from .compression_report_observation_counts import CompressionReportObservationCounts
from .compression_report_section import CompressionReportSection
from .compression_report_summary_origin import CompressionReportSummaryOrigin
from .compression_report_summary_origin_refused import CompressionReportSummaryOriginRefused
from .compression_report_token_usage import CompressionReportTokenUsage
from .envelope import Envelope
from .envelope_compression_report import EnvelopeCompressionReport
from .envelope_compression_report_section import EnvelopeCompressionReportSection
from .envelope_finding import EnvelopeFinding
from .envelope_fragment_document import EnvelopeFragmentDocument
from .envelope_fragment_document_kind import EnvelopeFragmentDocumentKind
from .envelope_loss import EnvelopeLoss
from .envelope_loss_kind import EnvelopeLossKind
from .envelope_metrics import EnvelopeMetrics
from .envelope_observation_counts import EnvelopeObservationCounts
from .envelope_seal_document import EnvelopeSealDocument
from .envelope_section_document import EnvelopeSectionDocument
from .envelope_sections_document import EnvelopeSectionsDocument
from .envelope_summary_origin import EnvelopeSummaryOrigin
from .envelope_summary_origin_refused import EnvelopeSummaryOriginRefused
from .envelope_token_usage import EnvelopeTokenUsage
from .eval_result import EvalResult
from .eval_result_by_scenario import EvalResultByScenario
from .eval_result_by_scenario_additional_property import EvalResultByScenarioAdditionalProperty
from .eval_result_errors import EvalResultErrors
from .eval_result_eval_miss import EvalResultEvalMiss
from .eval_result_gate_result import EvalResultGateResult
from .eval_result_gate_result_verdict import EvalResultGateResultVerdict
from .eval_result_metric_result import EvalResultMetricResult
from .eval_result_metric_result_better import EvalResultMetricResultBetter
from .eval_result_metric_result_kind import EvalResultMetricResultKind
from .eval_result_metric_result_method_type_0 import EvalResultMetricResultMethodType0
from .eval_result_metric_result_unscored import EvalResultMetricResultUnscored
from .eval_result_model_judging import EvalResultModelJudging
from .eval_result_model_usage import EvalResultModelUsage
from .eval_result_model_usage_unscored import EvalResultModelUsageUnscored
from .eval_result_rater_agreement import EvalResultRaterAgreement
from .eval_result_setup import EvalResultSetup
from .eval_result_split import EvalResultSplit
from .field_fault import FieldFault
from .finding import Finding
from .handoff import Handoff
from .handoff_handoff_line import HandoffHandoffLine
from .handoff_handoff_line_section import HandoffHandoffLineSection
from .handoff_summary_origin import HandoffSummaryOrigin
from .handoff_summary_origin_refused import HandoffSummaryOriginRefused
from .handoff_token_usage import HandoffTokenUsage
from .head_input import HeadInput
from .head_input_tools_type_0_item import HeadInputToolsType0Item
from .health import Health
from .message import Message
from .message_block_type_1 import MessageBlockType1
from .message_input import MessageInput
from .message_input_pin_type_0 import MessageInputPinType0
from .message_role import MessageRole
from .message_tool_call import MessageToolCall
from .meta_recommendation import MetaRecommendation
from .meta_recommendation_confidence import MetaRecommendationConfidence
from .meta_recommendation_evidence import MetaRecommendationEvidence
from .meta_recommendation_evidence_relation import MetaRecommendationEvidenceRelation
from .meta_recommendation_evidence_role import MetaRecommendationEvidenceRole
from .meta_recommendation_evidence_trust import MetaRecommendationEvidenceTrust
from .meta_recommendation_extractor import MetaRecommendationExtractor
from .meta_recommendation_kind import MetaRecommendationKind
from .meta_recommendation_modality_type_0 import MetaRecommendationModalityType0
from .meta_recommendation_polarity_type_0 import MetaRecommendationPolarityType0
from .meta_recommendation_review import MetaRecommendationReview
from .meta_recommendation_review_state import MetaRecommendationReviewState
from .meta_recommendation_scope import MetaRecommendationScope
from .meta_recommendation_sensitivity import MetaRecommendationSensitivity
from .meta_recommendation_slot import MetaRecommendationSlot
from .meta_recommendation_slot_cardinality import MetaRecommendationSlotCardinality
from .meta_recommendation_status import MetaRecommendationStatus
from .meta_recommendation_support import MetaRecommendationSupport
from .meta_recommendation_trust import MetaRecommendationTrust
from .meta_recommendation_validity import MetaRecommendationValidity
from .problem import Problem
from .profile_version_page import ProfileVersionPage
from .profile_version_row import ProfileVersionRow
from .recommendations_status_type_0 import RecommendationsStatusType0
from .record_page import RecordPage
from .report_page import ReportPage
from .resolved_original import ResolvedOriginal
from .result_page import ResultPage
from .session_health import SessionHealth
from .session_health_level import SessionHealthLevel
from .session_listing import SessionListing
from .session_page import SessionPage

__all__ = (
    "AppendedMessage",
    "AppendInput",
    "AppendResult",
    "BudgetsInput",
    "BuildInput",
    "BuildInputPolicyType0",
    "BuildInputProviderType0",
    "BuildResult",
    "BuildResultProviderType0",
    "BuildResultRequestType0",
    "ChangelogEntry",
    "ChangelogEntryChange",
    "ChangelogEntryChangeBlock",
    "ChangelogEntryChangeKind",
    "CompactDryRun",
    "CompactInput",
    "Compaction",
    "CompactionPrice",
    "CompressionReport",
    "CompressionReportLoss",
    "CompressionReportLossKind",
    "CompressionReportObservationCounts",
    "CompressionReportSection",
    "CompressionReportSummaryOrigin",
    "CompressionReportSummaryOriginRefused",
    "CompressionReportTokenUsage",
    "Envelope",
    "EnvelopeCompressionReport",
    "EnvelopeCompressionReportSection",
    "EnvelopeFinding",
    "EnvelopeFragmentDocument",
    "EnvelopeFragmentDocumentKind",
    "EnvelopeLoss",
    "EnvelopeLossKind",
    "EnvelopeMetrics",
    "EnvelopeObservationCounts",
    "EnvelopeSealDocument",
    "EnvelopeSectionDocument",
    "EnvelopeSectionsDocument",
    "EnvelopeSummaryOrigin",
    "EnvelopeSummaryOriginRefused",
    "EnvelopeTokenUsage",
    "EvalResult",
    "EvalResultByScenario",
    "EvalResultByScenarioAdditionalProperty",
    "EvalResultErrors",
    "EvalResultEvalMiss",
    "EvalResultGateResult",
    "EvalResultGateResultVerdict",
    "EvalResultMetricResult",
    "EvalResultMetricResultBetter",
    "EvalResultMetricResultKind",
    "EvalResultMetricResultMethodType0",
    "EvalResultMetricResultUnscored",
    "EvalResultModelJudging",
    "EvalResultModelUsage",
    "EvalResultModelUsageUnscored",
    "EvalResultRaterAgreement",
    "EvalResultSetup",
    "EvalResultSplit",
    "FieldFault",
    "Finding",
    "Handoff",
    "HandoffHandoffLine",
    "HandoffHandoffLineSection",
    "HandoffSummaryOrigin",
    "HandoffSummaryOriginRefused",
    "HandoffTokenUsage",
    "HeadInput",
    "HeadInputToolsType0Item",
    "Health",
    "Message",
    "MessageBlockType1",
    "MessageInput",
    "MessageInputPinType0",
    "MessageRole",
    "MessageToolCall",
    "MetaRecommendation",
    "MetaRecommendationConfidence",
    "MetaRecommendationEvidence",
    "MetaRecommendationEvidenceRelation",
    "MetaRecommendationEvidenceRole",
    "MetaRecommendationEvidenceTrust",
    "MetaRecommendationExtractor",
    "MetaRecommendationKind",
    "MetaRecommendationModalityType0",
    "MetaRecommendationPolarityType0",
    "MetaRecommendationReview",
    "MetaRecommendationReviewState",
    "MetaRecommendationScope",
    "MetaRecommendationSensitivity",
    "MetaRecommendationSlot",
    "MetaRecommendationSlotCardinality",
    "MetaRecommendationStatus",
    "MetaRecommendationSupport",
    "MetaRecommendationTrust",
    "MetaRecommendationValidity",
    "Problem",
    "ProfileVersionPage",
    "ProfileVersionRow",
    "RecommendationsStatusType0",
    "RecordPage",
    "ReportPage",
    "ResolvedOriginal",
    "ResultPage",
    "SessionHealth",
    "SessionHealthLevel",
    "SessionListing",
    "SessionPage",
)
