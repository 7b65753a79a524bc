//! The real LiteLLM between Sluicegate and the scripted upstream.
