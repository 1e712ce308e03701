package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// secretNames are credentials of model providers whose names follow no pattern.
var secretNames = map[string]bool{
	"GOOGLE_API_KEY": true,
	"CO_API_KEY":     true,
	"HF_TOKEN":       true,
	"ARK_API_KEY":    true,

	"AWS_BEARER_TOKEN_BEDROCK": true,
}

// secretOwners are the beginnings of variable names that belong to model providers and gateways.
var secretOwners = []string{"OPENAI", "AZURE_OPENAI", "ANTHROPIC", "CLAUDE", "CLAUDE_CODE", "GEMINI", "GOOGLE_GENERATIVE_AI", "VERTEX_AI", "MISTRAL",
	"CODESTRAL", "GROQ", "DEEPSEEK", "OPENROUTER", "XAI", "GROK", "COHERE", "TOGETHER", "TOGETHERAI", "TOGETHER_AI", "FIREWORKS", "FIREWORKS_AI",
	"PERPLEXITY", "PERPLEXITYAI", "CEREBRAS", "NVIDIA", "NVIDIA_NIM", "NGC", "REPLICATE", "HUGGINGFACE", "HUGGING_FACE", "HUGGING_FACE_HUB",
	"HUGGINGFACEHUB", "DASHSCOPE", "QWEN", "MOONSHOT", "KIMI", "ZHIPU", "ZHIPUAI", "ZAI", "Z_AI", "BIGMODEL", "MINIMAX", "VOYAGE", "AI21",
	"SAMBANOVA", "DEEPINFRA", "OLLAMA", "LITELLM", "AI_GATEWAY", "VERCEL_AI_GATEWAY", "CLOUDFLARE_AI", "WATSONX", "UPSTAGE", "NEBIUS",
	"HYPERBOLIC", "NOVITA", "BASETEN", "INCEPTION", "VENICE", "CHUTES", "SILICONFLOW", "VOLCENGINE", "STEPFUN", "BAICHUAN", "ELEVENLABS", "JINA", "HOLDFAST"}

// secretEnds are the endings of variable names that hold a secret.
var secretEnds = []string{"_KEY", "_KEYS", "_TOKEN", "_TOKENS", "_SECRET", "_PASSWORD", "_CREDENTIALS"}

// SecretEnv tells whether an environment variable holds a model provider's credential by its name. Such variables are for this
// process only; a command that the model runs must not see them. Other secrets (of forges, clouds, registries) are the user's to
// give to commands.
func SecretEnv(name string) bool {
	name = strings.ToUpper(name)
	base := strings.TrimRight(name, "0123456789") // OPENAI_API_KEY_2, OPENAI_API_KEY2
	for _, n := range []string{name, strings.TrimSuffix(base, "_")} {
		if secretNames[n] || ownedSecret(n) {
			return true
		}
	}
	return false
}

func ownedSecret(name string) bool {
	for _, owner := range secretOwners {
		rest, ok := strings.CutPrefix(name, owner)
		if !ok {
			continue
		}
		for _, end := range secretEnds {
			if strings.HasSuffix(rest, end) && strings.HasPrefix(rest, "_") {
				return true
			}
		}
	}
	return false
}

// credential is the keyed hash that identifies a credential without revealing it; "" for none.
func credential(credKey []byte, key string) string {
	if key == "" {
		return ""
	}
	mac := hmac.New(sha256.New, credKey)
	mac.Write([]byte(key))
	return hex.EncodeToString(mac.Sum(nil))[:16]
}
